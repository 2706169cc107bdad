"""`headrace lake status`: what is loaded, and how far it is behind, once or live."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.config_file import brokers_of
from headrace.cli.lake_options import config_option, load_config
from headrace.cli.options import json_option, watch_options, with_cluster
from headrace.cli.render import is_terminal, print_json, print_json_line, print_table
from headrace.cli.values import duration_text
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.spark.lake.config import LakeConfig
    from headrace.spark.lake.status import LakeStatus, TopicStatus

_COLUMNS = ("TOPIC", "TABLE", "PARTITIONS", "BATCH", "LOADED", "LAG", "LAG-TIME", "RATE", "LAST-COMMIT")


@click.command()
@config_option
@watch_options
@json_option
def status(config_path: Path, watch: bool, interval: float, as_json: bool) -> None:
    """Show per topic what is loaded, and how far it is behind.

    LOADED and LAG count records by offsets. LAG-TIME is the age of the oldest record that is not loaded. RATE
    is records a second over the last batches, while they ran. Neither Spark nor a running job is needed.
    """
    config = load_config(config_path)
    check_reachable(config)

    async def operation(cluster: Cluster) -> None:
        if not watch:
            _print(await _look(cluster, config), as_json)
        elif is_terminal() and not as_json:
            await _live(cluster, config, interval)
        else:
            while True:
                found = await _look(cluster, config)
                if as_json:
                    print_json_line({"time": round(time.time(), 3), **_document(found)})
                else:
                    click.echo(f"--- {time.strftime('%H:%M:%S')}")
                    _print(found, as_json=False)
                sys.stdout.flush()
                await asyncio.sleep(interval)

    with brokers_of(config_path):
        with_cluster(config.bootstrap, operation, how=config.kafka.security())


def check_reachable(config: LakeConfig, section: str = "lake") -> None:
    """Python's own files: what they cannot reach is said instead of guessed."""
    from headrace.spark.lake.files import is_local

    if not is_local(config.state):
        raise click.ClickException(
            f'the state is at {config.state}, which only Spark can read; set state = "..." below '
            f"[{section}] to a directory that this machine has"
        )


async def _look(cluster: Cluster, config: LakeConfig) -> LakeStatus:
    from headrace.spark.lake.files import files_for
    from headrace.spark.lake.status import look

    return await look(cluster, config, files_for(config.state, None))


async def _live(cluster: Cluster, config: LakeConfig, interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(Text("asking ..."), screen=False, auto_refresh=False, vertical_overflow="visible") as view:
        while True:
            try:
                view.update(drawing(await _look(cluster, config)), refresh=True)
            except ClientFailure as error:
                view.update(Text(f"{time.strftime('%H:%M:%S')}  {error}", "bold red"), refresh=True)
            await asyncio.sleep(interval)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def row(topic: TopicStatus, now_ms: int) -> tuple[object, ...]:
    lag_ms = topic.lag_ms(now_ms)
    return (
        topic.topic,
        topic.table,
        len(topic.partitions),
        topic.batch,
        topic.loaded,
        topic.lag,
        None if lag_ms is None else duration_text(lag_ms),
        None if topic.rate is None else f"{topic.rate:,.0f}/s",
        None if topic.last_commit_ms is None else _moment(topic.last_commit_ms),
    )


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def sentences(found: LakeStatus) -> list[str]:
    said = [f"{topic.topic}: {topic.error}" for topic in found.topics if topic.error is not None]
    if found.absent:
        said.append(f"named, and not there yet: {', '.join(found.absent)}")
    return said


def _document(found: LakeStatus) -> dict[str, object]:
    from headrace.spark.lake.status import document

    now_ms = _now_ms()
    return {"topics": [document(topic, now_ms) for topic in found.topics], "absent": list(found.absent)}


def _print(found: LakeStatus, as_json: bool) -> None:
    if as_json:
        print_json(_document(found))
        return
    now_ms = _now_ms()
    print_table(_COLUMNS, [row(topic, now_ms) for topic in found.topics], empty="no topic matches")
    for sentence in sentences(found):
        click.echo(sentence)


def drawing(found: LakeStatus) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if 2 <= at <= 7 else "left")
    now_ms = _now_ms()
    for topic in found.topics:
        cells = (
            "-" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)
            for cell in row(topic, now_ms)
        )
        table.add_row(*cells, style="red" if topic.error else "green" if not topic.lag else "")
    return Group(Text(time.strftime("%H:%M:%S")), table, *(Text(each, "yellow") for each in sentences(found)))
