"""`headrace cluster status`: the whole cluster in one look, once or live."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli.options import bootstrap_option, json_option, watch_options, with_cluster
from headrace.cli.render import is_terminal, print_json, print_json_line, print_table
from headrace.client import health
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.health import Health
from headrace.core.ids import TopicPartition

if TYPE_CHECKING:
    from rich.console import RenderableType  # only a terminal pays for it

SHOWN = 10
"""Partitions that are named for each thing that is wrong; --json names them all."""
WAIT_PAUSE = 0.25
BAD_VERDICTS = ("offline", "unwritable")


@click.command()
@watch_options
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=None,
    metavar="SECONDS",
    help="Wait until everything is well, at most this long: for scripts that restart brokers in turn.",
)
@bootstrap_option
@json_option
def status(watch: bool, interval: float, wait: float | None, bootstrap: str, as_json: bool) -> int:
    """Show brokers, controller, and what is not as it should be.

    The exit code is 0 while every partition can be read and written, 3 while one cannot; with --wait it is 3
    unless everything is well. On a terminal --watch shows a live view; elsewhere, or with --json, it writes
    one look after the other.
    """
    if watch and wait is not None:
        raise click.UsageError("--watch and --wait exclude each other")
    if not watch:
        seen = with_cluster(bootstrap, lambda cluster: _look_until_well(cluster, wait))
        print_json(document(seen)) if as_json else _print_plain(seen)
        bad = seen.verdict in BAD_VERDICTS if wait is None else not _is_well(seen)
        return 3 if bad else 0

    async def look_on(cluster: Cluster) -> None:
        if is_terminal() and not as_json:
            await _live(cluster, interval)
        else:
            await _repeat(cluster, interval, as_json)

    with_cluster(bootstrap, look_on)
    return 0


async def _look(cluster: Cluster) -> Health:
    return health.judge(await health.gather(cluster))


def _is_well(seen: Health) -> bool:
    return seen.verdict == "healthy" and not seen.moving


async def _look_until_well(cluster: Cluster, wait: float | None) -> Health:
    """One look, or looks until all is well or the time is over, through whatever fails meanwhile."""
    deadline = time.monotonic() + (wait or 0)
    while True:
        try:
            seen = await _look(cluster)
            if wait is None or _is_well(seen) or time.monotonic() > deadline:
                return seen
        except ClientFailure:
            if wait is None or time.monotonic() > deadline:
                raise
        await asyncio.sleep(WAIT_PAUSE)


async def _repeat(cluster: Cluster, interval: float, as_json: bool) -> None:
    while True:
        seen = await _look(cluster)
        if as_json:
            print_json_line({"time": round(time.time(), 3), **document(seen)})
        else:
            click.echo(f"--- {time.strftime('%H:%M:%S')}")
            _print_plain(seen)
        sys.stdout.flush()
        await asyncio.sleep(interval)


async def _live(cluster: Cluster, interval: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(Text("asking ..."), screen=False, auto_refresh=False) as view:
        while True:
            try:
                view.update(_drawing(await _look(cluster)), refresh=True)
            except ClientFailure as error:
                # A cluster that cannot be asked is a reason to go on looking.
                view.update(
                    Text(f"{time.strftime('%H:%M:%S')}  cannot ask the cluster: {error}", "bold red"),
                    refresh=True,
                )
            await asyncio.sleep(interval)


# --- what is said -----------------------------------------------------------------------------------------


def document(seen: Health) -> dict[str, object]:
    return {
        "cluster_id": seen.view.cluster_id,
        "verdict": seen.verdict,
        "controller": seen.view.controller,
        "brokers": [
            {
                "id": broker.broker_id,
                "address": broker.address,
                "rack": broker.rack,
                "alive": broker.alive,
                "leaders": seen.leaders[broker.broker_id],
                "replicas": seen.replicas[broker.broker_id],
            }
            for broker in seen.view.brokers
        ],
        "partitions": seen.partitions,
        "offline": _names(seen.offline),
        "under_min_isr": _names(seen.under_min_isr),
        "at_min_isr": _names(seen.at_min_isr),
        "under_replicated": _names(seen.under_replicated),
        "not_preferred_leader": _names(seen.not_preferred),
        "reassignments": [
            {
                "partition": str(partition),
                "replicas": list(moving.replicas),
                "adding": list(moving.adding),
                "removing": list(moving.removing),
            }
            for partition, moving in sorted(seen.moving.items())
        ],
        "out_of_sync": [
            {"partition": str(partition), "broker": broker_id, "lag": lag}
            for (partition, broker_id), lag in sorted(seen.lagging.items())
        ],
        "max_lag": seen.max_lag,
    }


def _names(partitions: Sequence[TopicPartition]) -> list[str]:
    return [str(partition) for partition in sorted(partitions)]


def sentences(seen: Health) -> list[tuple[str, str]]:
    """(what, where) for each kind of thing that is wrong, worst first."""
    dead = [f"broker {broker_id}" for broker_id in seen.dead]
    moving = [
        f"{partition} to {','.join(str(added) for added in entry.adding) or 'fewer'}"
        for partition, entry in sorted(seen.moving.items())
    ]
    kinds: list[tuple[str, list[str]]] = [
        ("without a leader: neither read nor written", _names(seen.offline)),
        ("below min.insync.replicas: acks=all is refused", _names(seen.under_min_isr)),
        ("not alive", dead),
        ("under-replicated", _names(seen.under_replicated)),
        ("one replica away from refusing acks=all", _names(seen.at_min_isr)),
        ("being moved", moving),
        ("not led by the preferred replica", _names(seen.not_preferred)),
    ]
    return [(f"{len(names)} {what}", _some(names)) for what, names in kinds if names]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def summary(seen: Health) -> str:
    alive = len(seen.view.brokers) - len(seen.dead)
    lag = f"  max lag {seen.max_lag:,}" if seen.max_lag else ""
    return (
        f"{seen.verdict}  cluster {seen.view.cluster_id}  controller {seen.view.controller}  "
        f"brokers {alive}/{len(seen.view.brokers)}  partitions {seen.partitions:,}{lag}"
    )


def _rows(seen: Health) -> list[tuple[object, ...]]:
    return [
        (
            broker.broker_id,
            broker.address or None,
            broker.rack,
            "alive" if broker.alive else "down",
            seen.leaders[broker.broker_id],
            seen.replicas[broker.broker_id],
            "controller" if broker.broker_id == seen.view.controller else "",
        )
        for broker in seen.view.brokers
    ]


_COLUMNS = ("BROKER", "ADDRESS", "RACK", "STATE", "LEADERS", "REPLICAS", "ROLE")


def _print_plain(seen: Health) -> None:
    click.echo(summary(seen))
    print_table(_COLUMNS, _rows(seen))
    for what, where in sentences(seen):
        click.echo(f"{what}: {where}")


def _drawing(seen: Health) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    colour = {"healthy": "bold green", "degraded": "bold yellow"}.get(seen.verdict, "bold red")
    head = Text(time.strftime("%H:%M:%S  "))
    head.append(summary(seen), colour)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(_COLUMNS):
        table.add_column(name, justify="right" if at in (0, 4, 5) else "left")
    for row in _rows(seen):
        style = "" if row[3] == "alive" else "red"
        table.add_row(*("-" if cell is None else str(cell) for cell in row), style=style)
    wrong = [Text.assemble((what, "bold"), ": ", where) for what, where in sentences(seen)]
    return Group(head, table, *wrong)
