"""`headrace mirror groups`: which offsets of groups have been carried over."""

from __future__ import annotations

from pathlib import Path

import click

from headrace.cli.mirror_options import asked, config_option, load_config
from headrace.cli.options import json_option
from headrace.cli.render import print_json, print_table

_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "OFFSET", "TARGET", "EXACT", "COMMITTED-THERE", "STATE")


@click.command()
@click.argument("groups", nargs=-1)
@click.option("--ready", is_flag=True, help="Exit with 1 unless every offset is carried; before a move.")
@config_option
@json_option
def groups(groups: tuple[str, ...], ready: bool, config_path: Path, as_json: bool) -> None:
    """Show for each committed offset of the source what it is on the target.

    STATE is `carried` where the target has it; `behind` while its record is not mirrored yet; `in use` while
    the group has members on the target; `moved` once members have committed there, after which it is left
    alone. A running mirror carries; this command only looks.
    """
    config = load_config(config_path)
    from headrace.spark.mirror.reading import groups_now

    found = [each for each in asked(config_path, groups_now(config)) if not groups or each.group in groups]
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        rows = [
            (
                each.group,
                each.topic,
                each.partition,
                each.source_offset,
                each.target,
                each.target_offset,
                each.there,
                each.state,
            )
            for each in found
        ]
        print_table(_COLUMNS, rows, empty="no group has committed offsets of mirrored topics")
    late = sum(each.state == "behind" or each.there != each.target_offset for each in found)
    unknown = sorted(set(groups) - {each.group for each in found})
    if ready and unknown:
        raise click.ClickException(
            f"no offsets of mirrored topics are committed at the source by {', '.join(unknown)}: is the name "
            "right, and does [groups] of the configuration match it?"
        )
    if ready and late:
        raise click.ClickException(f"{late} offsets are not carried yet")
