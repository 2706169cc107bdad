"""`headrace mirror status`: what is mirrored, and how far it is behind."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.mirror_options import asked, config_option, load_config
from headrace.cli.options import json_option
from headrace.cli.render import print_json, print_table
from headrace.cli.values import duration_text

if TYPE_CHECKING:
    from headrace.spark.mirror.reading import MirrorStatus

_COLUMNS = ("TOPIC", "TARGET", "PARTITIONS", "MIRRORED", "LAG", "LAG-TIME")


@click.command()
@config_option
@json_option
def status(config_path: Path, as_json: bool) -> None:
    """Show per topic what is mirrored, and how far it is behind.

    MIRRORED and LAG count records by offsets of the source. LAG-TIME is the age of the oldest record that is
    not mirrored. Topics that stand still say why. Neither Spark nor a running mirror is needed.
    """
    config = load_config(config_path)
    from headrace.spark.mirror.reading import status_now

    found = asked(config_path, status_now(config))
    now_ms = time.time_ns() // 1_000_000
    if as_json:
        print_json(_document(found, now_ms))
        return
    rows = [
        (
            each.topic,
            each.target,
            each.partitions,
            each.mirrored,
            each.lag,
            duration_text(each.lag_ms(now_ms)),
        )
        for each in found.topics
    ]
    print_table(_COLUMNS, rows, empty="nothing is mirrored yet")
    for text in _sentences(found):
        click.echo(text)


def _document(found: MirrorStatus, now_ms: int) -> dict[str, object]:
    topics = [{**asdict(each), "lag_ms": each.lag_ms(now_ms)} for each in found.topics]
    return {**asdict(found), "topics": topics}


def _sentences(found: MirrorStatus) -> list[str]:
    said = [each.problem for each in found.topics if each.problem is not None]
    if found.absent:
        said.append(f"named, and not there yet: {', '.join(found.absent)}")
    if found.coming:
        said.append(f"to be mirrored, and not begun with: {', '.join(found.coming)}")
    return said
