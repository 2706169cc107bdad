"""`headrace cluster status`: the whole cluster in one look, once or live."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli import scrub_column
from headrace.cli.options import bootstrap_option, json_option, watch_options, with_cluster
from headrace.cli.render import is_terminal, print_json, print_json_line, print_table
from headrace.client import health
from headrace.client.balancing_decisions import decisions
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.findings import Finding, findings, names
from headrace.client.health import Health

if TYPE_CHECKING:
    from rich.console import RenderableType  # only a terminal pays for it

SHOWN = 10
"""Partitions that are named for each thing that is wrong; --json names them all."""
WAIT_PAUSE = 0.25
BAD_VERDICTS = ("offline", "unwritable", "unreadable")
now = time.monotonic
"""What --wait counts by."""


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

    The exit code is 0 while every partition can be read and written, 3 while one cannot or no broker reaches
    ZooKeeper; with --wait it is 3 unless everything is well. On a terminal --watch shows a live view;
    elsewhere, or with --json, it writes one look after the other.
    """
    if watch and wait is not None:
        raise click.UsageError("--watch and --wait exclude each other")
    if not watch:
        seen = with_cluster(bootstrap, lambda cluster: _look_until_well(cluster, wait))
        print_json(document(seen)) if as_json else _print_plain(seen)
        bad = seen.verdict in BAD_VERDICTS or seen.is_frozen if wait is None else not seen.is_well
        return 3 if bad else 0

    live = is_terminal() and not as_json

    async def look_on(cluster: Cluster) -> None:
        if live:
            await _live(cluster, interval)
        else:
            await _repeat(cluster, interval, as_json)

    with_cluster(bootstrap, look_on, live=live)
    return 0


async def _look(cluster: Cluster) -> Health:
    return health.judge(await health.gather(cluster))


async def _look_until_well(cluster: Cluster, wait: float | None) -> Health:
    """One look, or looks until all is well or the time is over, through whatever fails meanwhile."""
    deadline = now() + (wait or 0)
    while True:
        try:
            seen = await _look(cluster)
            if wait is None or seen.is_well or now() > deadline:
                return seen
        except ClientFailure:
            if wait is None or now() > deadline:
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
        "findings": [
            {"what": found.what, "where": list(found.where), "do": found.do} for found in findings(seen)
        ],
        "controller": seen.view.controller,
        "brokers": [
            {
                "id": broker.broker_id,
                "address": broker.address,
                "rack": broker.rack,
                "alive": broker.alive,
                "state": broker.state,
                "zookeeper": _zookeeper(seen, broker.broker_id),
                "leaders": seen.leaders[broker.broker_id],
                "replicas": seen.replicas[broker.broker_id],
                "directories": _directories(seen, broker.broker_id),
                "scrub": scrub_column.document(seen.brokers.get(broker.broker_id)),
                "figures": dict(told.figures) if (told := seen.brokers.get(broker.broker_id)) else {},
            }
            for broker in seen.view.brokers
        ],
        "partitions": seen.partitions,
        "offline": names(seen, seen.offline),
        "under_min_isr": names(seen, seen.under_min_isr),
        "at_min_isr": names(seen, seen.at_min_isr),
        "under_replicated": names(seen, seen.under_replicated),
        "not_preferred_leader": names(seen, seen.not_preferred),
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
        "balancing_decisions": [
            {"time_ms": each.wall_ms, "what": each.what, "why": each.why}
            for each in decisions(seen.brokers.values())
        ],
    }


def _directories(seen: Health, broker_id: int) -> list[dict[str, object]]:
    return [
        {
            "path": directory.path,
            "offline": directory.failed,
            "total_bytes": directory.total_bytes,
            "usable_bytes": directory.usable_bytes,
            "days_until_full": None if days is None else round(days, 1),
        }
        for directory in seen.directories.get(broker_id, ())
        for days in (seen.days_left(broker_id, directory),)
    ]


def _zookeeper(seen: Health, broker_id: int) -> str | None:
    """None where there is none, or the broker cannot say."""
    told = seen.brokers.get(broker_id)
    if told is None or told.reaches_zookeeper is None:
        return None
    return "answers" if told.reaches_zookeeper else "no answer"


def _sentence(found: Finding) -> str:
    return f"{found.headline}: {_some(found.where)}" if found.where else found.headline


def reason(seen: Health) -> list[str]:
    """Why the verdict is not healthy, and what to do next."""
    if seen.verdict == "healthy":
        return []
    worst = findings(seen)[0]
    return [f"{seen.verdict}: {_sentence(worst)}", *([f"next: {worst.do}"] if worst.do else [])]


def sentences(seen: Health) -> list[str]:
    """What else is not as it should be, worst first."""
    rest = findings(seen)[0 if seen.verdict == "healthy" else 1 :]
    return [f"{_sentence(found)}{f'; {found.do}' if found.do else ''}" for found in rest]


def balancing(seen: Health) -> list[str]:
    """What self-balancing decided last, where it has ever been on."""
    return [f"self-balancing: {each}" for each in decisions(seen.brokers.values())[-1:]]


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
    now_ms = int(time.time() * 1000)
    is_scrubbed = scrub_column.is_told(seen)
    return [
        (
            broker.broker_id,
            broker.address or None,
            broker.rack,
            broker.state,
            seen.leaders[broker.broker_id],
            seen.replicas[broker.broker_id],
            "controller" if broker.broker_id == seen.view.controller else "",
            *((scrub_column.cell(seen.brokers.get(broker.broker_id), now_ms),) if is_scrubbed else ()),
        )
        for broker in seen.view.brokers
    ]


def _columns(seen: Health) -> tuple[str, ...]:
    known = ("BROKER", "ADDRESS", "RACK", "STATE", "LEADERS", "REPLICAS", "ROLE")
    return (*known, "SCRUB") if scrub_column.is_told(seen) else known


def _colour(seen: Health) -> str:
    return {"healthy": "green", "degraded": "yellow"}.get(seen.verdict, "red")


def _print_plain(seen: Health) -> None:
    for line in (summary(seen), *reason(seen)):
        click.secho(line, fg=_colour(seen), bold=True)  # click takes colours away where no terminal is
    print_table(_columns(seen), _rows(seen))
    for line in (*sentences(seen), *balancing(seen)):
        click.echo(line)


def _drawing(seen: Health) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    colour = f"bold {_colour(seen)}"
    head = Text(time.strftime("%H:%M:%S  "))
    head.append(summary(seen), colour)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(_columns(seen)):
        table.add_column(name, justify="right" if at in (0, 4, 5) else "left")
    for row in _rows(seen):
        style = "" if row[3] == "alive" else "red"
        table.add_row(*("-" if cell is None else str(cell) for cell in row), style=style)
    why = [Text(line, colour) for line in reason(seen)]
    return Group(head, *why, table, *(Text(line) for line in (*sentences(seen), *balancing(seen))))
