"""`headrace group reset`: a plan first, then, with --execute, the offsets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TextIO

import click

from headrace.cli.completions import complete_groups, complete_topics
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.cli.values import counted, duration_ms, topic_partitions
from headrace.client import offset_resets
from headrace.client.cluster import Cluster
from headrace.client.offset_resets import PlannedReset, Target, TargetKind
from headrace.client.start import parse_time_ms


@click.command()
@click.argument("name", metavar="GROUP", shell_complete=complete_groups)
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="This offset.")
@click.option("--to-earliest", is_flag=True, help="The first record that is there.")
@click.option("--to-latest", is_flag=True, help="The end: only what comes from now on.")
@click.option("--to-current", is_flag=True, help="Where it is; with --to-file, to keep it.")
@click.option("--to-datetime", metavar="TIME", help="The first record of this time: ISO, or milliseconds.")
@click.option(
    "--by-duration", metavar="DURATION", callback=duration_ms, help="So long ago: 90s, 1h30m, 2d, PT1H30M."
)
@click.option("--shift-by", type=int, metavar="N", help="So many records on, or back if negative.")
@click.option("--from-file", type=click.File(), metavar="PATH", help="Lines topic,partition,offset.")
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITIONS]",
    shell_complete=complete_topics,
    help="Only there, as in orders:0,1; may be repeated. Default: wherever the group has committed.",
)
@click.option("--to-file", type=click.File("w", lazy=True), metavar="PATH", help="Write the plan there.")
@click.option("--execute", is_flag=True, help="Do it. Without this, only the plan is shown.")
@bootstrap_option
@json_option
def reset(
    name: str,
    topics: tuple[str, ...],
    to_file: TextIO | None,
    execute: bool,
    bootstrap: str,
    as_json: bool,
    **targets: object,
) -> None:
    """Move the committed offsets of a group that has no members.

    \b
    headrace group reset billing --to-datetime 2026-11-01T00:00 --topic orders
    headrace group reset billing --to-datetime 2026-11-01T00:00 --topic orders --execute
    headrace group reset billing --to-current --to-file before.csv

    Nothing is changed without --execute: the plan is shown. An offset outside of the log becomes the nearest
    end. Files are those of kafka-consumer-groups.sh: topic,partition,offset.
    """
    target = _target(name, targets)
    chosen = [topic_partitions(text) for text in topics]

    async def operation(cluster: Cluster) -> tuple[bool, list[PlannedReset]]:
        exists = await offset_resets.check_inactive(cluster, name)
        partitions = await offset_resets.chosen_partitions(cluster, name, chosen, target)
        plan = await offset_resets.plan_reset(cluster, name, partitions, target)
        if execute:
            await offset_resets.carry_out(cluster, name, plan)
        return exists, plan

    exists, plan = with_cluster(bootstrap, operation)
    if to_file is not None:
        offset_resets.write_plan(to_file, {name: plan})
        to_file.close()
    if as_json:
        print_json({"group": name, "executed": execute, "offsets": [_document(entry) for entry in plan]})
        return
    _print(plan)
    if not exists:
        verb = "is new" if execute else "does not exist yet: --execute makes it"
        click.echo(f"group {name} {verb}", err=True)
    if execute:
        click.echo(f"reset {name}: {counted(len(plan), 'partition')}", err=True)
    else:
        click.echo("nothing was changed: this is the plan, --execute carries it out", err=True)


def _target(name: str, given: dict[str, object]) -> Target:
    """Exactly one of the ways to say where to."""
    said = [key for key, value in given.items() if value is not None and value is not False]
    if len(said) != 1:
        options = ", ".join("--" + key.replace("_", "-") for key in given)
        raise click.UsageError(f"say where to, with one of {options}")
    (key,) = said
    value = given[key]
    if key == "from_file":
        lines = list(value) if hasattr(value, "__iter__") else []
        return Target(TargetKind.GIVEN, given=offset_resets.read_plan(lines, name))
    if key == "to_datetime":
        return Target(TargetKind.TIME, parse_time_ms(str(value)))
    number = value if isinstance(value, int) else 0
    if key == "by_duration":
        return Target(TargetKind.TIME, time.time_ns() // 1_000_000 - number)
    kinds = {"to_offset": TargetKind.OFFSET, "shift_by": TargetKind.SHIFT}
    plain = {
        "to_earliest": TargetKind.EARLIEST,
        "to_latest": TargetKind.LATEST,
        "to_current": TargetKind.CURRENT,
    }
    return Target(kinds[key], number) if key in kinds else Target(plain[key])


def _print(plan: Sequence[PlannedReset]) -> None:
    print_table(
        ("TOPIC", "PARTITION", "COMMITTED", "NEW", "CHANGE", "FIRST", "END", "NEW-LAG"),
        [
            (
                *entry.partition,
                entry.before,
                entry.after,
                None if entry.before is None else f"{entry.after - entry.before:+d}",
                entry.first,
                entry.end,
                entry.lag,
            )
            for entry in plan
        ],
        empty="nothing to move",
    )
    for entry in plan:
        if entry.clipped:
            click.echo(
                f"{entry.partition}: {entry.asked} is outside of the log, so {entry.after} is taken", err=True
            )


def _document(entry: PlannedReset) -> dict[str, object]:
    return {
        "topic": entry.partition.topic,
        "partition": entry.partition.partition,
        "committed": entry.before,
        "new": entry.after,
        "asked": entry.asked,
        "first": entry.first,
        "end": entry.end,
    }
