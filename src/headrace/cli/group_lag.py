"""`headrace group lag`: how far groups are behind, once or live."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from headrace.cli.completions import complete_groups, complete_topics
from headrace.cli.options import bootstrap_option, json_option, watch_options, with_cluster
from headrace.cli.render import is_terminal, print_json, print_json_line, print_table
from headrace.client import groups
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.group_lag import GroupLag, PartitionLag, lags
from headrace.core.ids import TopicPartition

if TYPE_CHECKING:
    from rich.console import RenderableType  # only a terminal pays for it

Rates = Mapping[tuple[str, TopicPartition], float]
"""Records a second that a group commits in a partition, as far as two looks can tell."""

_COLUMNS = (
    "TOPIC",
    "PARTITION",
    "COMMITTED",
    "STABLE",
    "HIGH-WATERMARK",
    "END",
    "LAG",
    "MEMBER",
    "CLIENT",
    "HOST",
)


@click.command()
@click.argument("names", metavar="[GROUP...]", nargs=-1, shell_complete=complete_groups)
@click.option(
    "-t",
    "--topic",
    "topics",
    multiple=True,
    shell_complete=complete_topics,
    help="Only this topic; may be repeated.",
)
@click.option("--behind", is_flag=True, help="Only partitions with a lag.")
@watch_options
@bootstrap_option
@json_option
def lag(
    names: tuple[str, ...],
    topics: tuple[str, ...],
    behind: bool,
    watch: bool,
    interval: float,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Show how far groups are behind: those that are named, or all.

    COMMITTED is where the group goes on after a restart; LAG counts from there to the HIGH-WATERMARK, the end
    of what consumers may read. Where nothing is committed everything counts as unread. STABLE is shown where
    an open transaction keeps consumers of committed records from going further. END is the end of the
    leader's log. --watch adds RATE, the records a second that were committed since the look before.
    """
    if not watch:
        print_looks(with_cluster(bootstrap, lambda cluster: _look(cluster, names, topics)), behind, as_json)
        return

    live = is_terminal() and not as_json

    async def look_on(cluster: Cluster) -> None:
        if live:
            await _live(cluster, names, topics, behind, interval)
        else:
            await _repeat(cluster, names, topics, behind, interval, as_json)

    with_cluster(bootstrap, look_on, live=live)


async def _look(cluster: Cluster, names: Sequence[str], topics: Sequence[str]) -> list[GroupLag]:
    """At all groups that can have offsets, where none is named."""
    if names:
        return await lags(cluster, list(dict.fromkeys(names)), topics)
    listed = await groups.list_groups(cluster)
    reading = [group.group_id for group in listed if group.kind in ("", groups.CLASSIC, groups.CONSUMER)]
    return [entry for entry in await lags(cluster, reading, topics) if entry.partitions]


def rates(before: Sequence[GroupLag], after: Sequence[GroupLag], seconds: float) -> Rates:
    """Only where both looks saw an offset: a group that begins has no rate yet."""
    old = {
        (group.group_id, entry.partition): entry.committed.offset
        for group in before
        for entry in group.partitions
        if entry.committed is not None
    }
    return {
        (group.group_id, entry.partition): (
            (entry.committed.offset - old[group.group_id, entry.partition]) / seconds
        )
        for group in after
        for entry in group.partitions
        if entry.committed is not None and (group.group_id, entry.partition) in old
    }


async def _repeat(
    cluster: Cluster,
    names: Sequence[str],
    topics: Sequence[str],
    behind: bool,
    interval: float,
    as_json: bool,
) -> None:
    while True:
        seen = await _look(cluster, names, topics)
        if as_json:
            print_json_line({"time": round(time.time(), 3), "groups": [document(entry) for entry in seen]})
        else:
            click.echo(f"--- {time.strftime('%H:%M:%S')}")
            print_looks(seen, behind, as_json=False)
        sys.stdout.flush()
        await asyncio.sleep(interval)


async def _live(
    cluster: Cluster, names: Sequence[str], topics: Sequence[str], behind: bool, interval: float
) -> None:
    from rich.live import Live
    from rich.text import Text

    before: list[GroupLag] = []
    looked = 0.0
    with Live(Text("asking ..."), screen=False, auto_refresh=False, vertical_overflow="visible") as view:
        while True:
            try:
                seen = await _look(cluster, names, topics)
                now = time.monotonic()
                view.update(
                    drawing(seen, rates(before, seen, max(now - looked, 0.001)), behind), refresh=True
                )
                before, looked = seen, now
            except ClientFailure as error:
                # Coordinators move, consumers stop: a reason to go on looking.
                view.update(Text(f"{time.strftime('%H:%M:%S')}  {error}", "bold red"), refresh=True)
            await asyncio.sleep(interval)


# --- what is said -----------------------------------------------------------------------------------------


def print_looks(seen: Sequence[GroupLag], behind: bool, as_json: bool) -> None:
    if as_json:
        print_json([document(entry) for entry in seen])
        return
    if not seen:
        click.echo("no group has committed anything", err=True)
    for at, entry in enumerate(seen):
        if at:
            click.echo()
        click.echo(summary(entry))
        print_table(_COLUMNS, [_row(partition) for partition in _shown(entry, behind)], ids=("MEMBER",))
        for sentence in sentences(entry):
            click.echo(sentence)


def _shown(entry: GroupLag, behind: bool) -> list[PartitionLag]:
    return [partition for partition in entry.partitions if not behind or partition.lag != 0]


def summary(entry: GroupLag) -> str:
    members = 0 if entry.group is None else len(entry.group.members)
    return (
        f"{entry.group_id}  {entry.state}  members {members}  partitions {len(entry.partitions)}  "
        f"total lag {entry.total:,}{f', {entry.unread:,} of them without a commit' if entry.unread else ''}"
    )


def _row(entry: PartitionLag) -> tuple[object, ...]:
    ends, member = entry.ends, entry.member
    return (
        *entry.partition,
        None if entry.committed is None else entry.committed.offset,
        ends.stable if ends is not None and entry.held else None,
        None if ends is None else ends.high_watermark,
        None if ends is None else ends.end,
        entry.lag,
        None if member is None else member.instance_id or member.member_id,
        None if member is None else member.client_id,
        None if member is None else member.host,
    )


def sentences(entry: GroupLag) -> list[str]:
    """What a table of numbers does not say: why a lag will not shrink by itself."""
    said = []
    if entry.total and entry.group is not None and not entry.group.members:
        said.append("nobody reads: the group has no members")
    unread = [p.partition for p in entry.partitions if p.lag and p.member is None]
    if unread and entry.group is not None and entry.group.members:
        said.append(f"no member reads {', '.join(map(str, unread))}")
    for partition in entry.partitions:
        name, ends, committed = partition.partition, partition.ends, partition.committed
        if ends is None:
            said.append(f"{name}: there is no leader to ask, or no such partition any more")
        elif partition.held:
            said.append(
                f"{name}: an open transaction holds consumers of committed records at {ends.stable}; "
                f"`headrace txn find-hanging --all --topic {name.topic}` shows whose it is"
            )
        if partition.unread:
            said.append(
                f"{name}: nothing is committed, so all {partition.unread:,} records count as unread; where a"
                " consumer begins there is its auto.offset.reset"
            )
        if partition.missed:
            said.append(f"{name}: {partition.missed:,} records were removed before the group read them")
        if committed is not None and committed.pending:
            said.append(f"{name}: a transaction that is not over yet will commit another offset")
    return said


def document(entry: GroupLag) -> dict[str, object]:
    return {
        "group": entry.group_id,
        "state": entry.state,
        "members": 0 if entry.group is None else len(entry.group.members),
        "total_lag": entry.total,
        "without_commit": entry.unread,
        "partitions": [
            {
                "topic": partition.partition.topic,
                "partition": partition.partition.partition,
                "committed": None if partition.committed is None else partition.committed.offset,
                "metadata": None if partition.committed is None else partition.committed.metadata,
                "pending": partition.committed is not None and partition.committed.pending,
                "first": None if partition.ends is None else partition.ends.first,
                "last_stable": None if partition.ends is None else partition.ends.stable,
                "high_watermark": None if partition.ends is None else partition.ends.high_watermark,
                "end": None if partition.ends is None else partition.ends.end,
                "lag": partition.lag,
                "member": None if partition.member is None else partition.member.member_id,
                "client": None if partition.member is None else partition.member.client_id,
                "host": None if partition.member is None else partition.member.host,
            }
            for partition in entry.partitions
        ],
    }


def drawing(seen: Sequence[GroupLag], speeds: Rates, behind: bool) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[RenderableType] = [Text(time.strftime("%H:%M:%S"))]
    for entry in seen:
        parts.append(Text(summary(entry), "bold green" if not entry.total else "bold yellow"))
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for at, name in enumerate((*_COLUMNS, "RATE")):
            table.add_column(name, justify="right" if at in (1, 2, 3, 4, 5, 6, 10) else "left")
        for partition in _shown(entry, behind):
            speed = speeds.get((entry.group_id, partition.partition))
            cells = [*_row(partition), None if speed is None else f"{speed:,.0f}/s"]
            stuck = bool(partition.lag) and speed == 0
            table.add_row(
                *("-" if cell is None else str(cell) for cell in cells), style="red" if stuck else ""
            )
        parts.append(table)
        parts += [Text(sentence, "yellow") for sentence in sentences(entry)]
    return Group(*parts)
