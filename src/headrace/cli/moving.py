"""What all commands that move replicas have in common: options, the plan as a table, the progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from headrace.cli.options import with_cluster
from headrace.cli.progress import ProgressLine
from headrace.cli.render import print_json, print_table
from headrace.cli.values import byte_rate, counted, duration_text
from headrace.client import moves, throttles
from headrace.client.cluster import Cluster
from headrace.client.move_volumes import Volume, volume
from headrace.client.throttles import Move
from headrace.core.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])

Elections = Mapping[TopicPartition, tuple[int, int]]
"""Who leads now, and who shall: the first of the replicas that stay."""


def move_options(command: F) -> F:
    for option in (
        click.option("--no-wait", is_flag=True, help="Ask for everything at once and do not wait for it."),
        click.option(
            "--at-once",
            type=click.IntRange(1),
            default=moves.AT_ONCE,
            show_default=True,
            metavar="N",
            help="Partitions that move at the same time.",
        ),
        click.option(
            "--throttle",
            callback=byte_rate,
            metavar="BYTES/s",
            help="How fast each broker may copy, such as 50MB. The limit is taken away at the end.",
        ),
        click.option("--plan", is_flag=True, help="Show what would be moved, and move nothing."),
    ):
        command = option(command)
    return command


def plan_moves(
    bootstrap: str,
    todo: Mapping[TopicPartition, Move],
    throttle: int | None,
    as_json: bool,
    elections: Elections | None = None,
) -> None:
    """Show the plan, with how much it has to copy."""
    if not any(move.adding for move in todo.values()):
        show_plan(todo, as_json, elections)
        return
    found = with_cluster(bootstrap, lambda cluster: volume(cluster, todo))
    show_plan(todo, as_json, elections, found)
    if as_json:
        return
    text = (
        f"in all: {counted(found.partitions, 'partition')}, {counted(found.copies, 'copy', 'copies')}, "
        f"{found.copied_bytes / 1e6:,.1f} MB"
    )
    if throttle is None:
        text += "; with --throttle the plan says how long that takes"
    else:
        least = duration_text(int(found.least_seconds(throttle) * 1000))
        text += f", at {throttle / 1e6:,.1f} MB/s at least {least}"
    click.echo(text)


def show_plan(
    todo: Mapping[TopicPartition, Move],
    as_json: bool,
    elections: Elections | None = None,
    volume: Volume | None = None,
) -> None:
    if as_json:
        elected = {} if elections is None else {"elections": _elections(elections)}
        copied = {} if volume is None else {"copies": volume.copies, "bytes": volume.copied_bytes}
        print_json({"moves": _documents(todo), **elected, **copied})
        return
    print_table(
        ("PARTITION", "FROM", "TO", "COPIES"),
        [(str(p), list(move.before), list(move.after), len(move.adding)) for p, move in sorted(todo.items())],
        empty="" if elections else "nothing to move",
    )
    if elections:
        print_table(
            ("PARTITION", "LEADER", "PREFERRED"),
            [(str(partition), *pair) for partition, pair in sorted(elections.items())],
        )


def _elections(elections: Elections) -> list[dict[str, object]]:
    return [
        {"topic": partition.topic, "partition": partition.partition, "from": leader, "to": preferred}
        for partition, (leader, preferred) in sorted(elections.items())
    ]


def _documents(todo: Mapping[TopicPartition, Move]) -> list[dict[str, object]]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "from": list(move.before),
            "to": list(move.after),
        }
        for partition, move in sorted(todo.items())
    ]


def perform(
    bootstrap: str,
    todo: Mapping[TopicPartition, Move],
    throttle: int | None,
    at_once: int,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Carry the moves out and say so. Ctrl-C leaves those that are under way to the cluster."""

    async def operation(cluster: Cluster) -> None:
        if no_wait:
            if throttle is not None:
                await throttles.throttle(cluster, todo, throttle)
            await moves.begin(cluster, {partition: move.after for partition, move in todo.items()})
            return
        with ProgressLine() as line:
            await moves.carry_out(cluster, todo, bytes_per_second=throttle, at_once=at_once, tell=line.tell)

    try:
        with_cluster(bootstrap, operation)
    except KeyboardInterrupt:
        click.echo(
            "what is under way goes on in the cluster, with its throttle; see `headrace cluster status`, and "
            "`headrace topic reassign TOPIC --follow` or --cancel",
            err=True,
        )
        raise
    if as_json:
        print_json({"moves": _documents(todo), "done": not no_wait})
    else:
        click.echo(f"{'asked for' if no_wait else 'moved'} {counted(len(todo), 'partition')}")
