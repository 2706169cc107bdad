"""What the screens of `headrace top` show of a snapshot, as rows of texts: pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from headrace.cli.render import visible
from headrace.cli.values import duration_text
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import GroupSeen, Snapshot, TopicSeen

UNKNOWN: Final = "-"


class Screen(NamedTuple):
    key: str
    title: str
    columns: Sequence[str]
    rows: Callable[[Snapshot], list[tuple[str, ...]]]
    """Every one of them: how many fit is for the terminal to say."""


def headline(seen: Snapshot) -> str:
    verdict = f"not known: {seen.health.reason}" if isinstance(seen.health, Unknown) else seen.health.verdict
    alive = sum(broker.state == "alive" for broker in seen.brokers.values())
    totals = seen.totals
    return visible(
        f"{verdict}  cluster {seen.view.cluster_id}  brokers {alive}/{len(seen.brokers)}"
        f"  topics {totals.topics:,}  partitions {totals.partitions:,}"
        f"  in {_rate(totals.rate_in)}  out {_rate(totals.rate_out)}"
    )


def broker_rows(seen: Snapshot) -> list[tuple[str, ...]]:
    return [
        _row(
            broker.broker_id,
            broker.state,
            "controller" if broker.is_controller else "",
            broker.leaders,
            broker.replicas,
            broker.out_of_sync,
            _bytes(broker.size_bytes),
            _rate(broker.rate_in),
            _days(broker.days_left),
            broker.figures.get("loop.lag.p99.ms", UNKNOWN),
        )
        for broker in seen.brokers.values()
    ]


def topic_rows(seen: Snapshot) -> list[tuple[str, ...]]:
    """The busiest first."""

    def rank(topic: TopicSeen) -> tuple[float, str]:
        return -(topic.rate_in or 0.0), topic.name

    return [
        _row(
            topic.name,
            topic.condition.value,
            len(topic.partitions),
            _rate(topic.rate_in),
            _rate(topic.rate_out),
            _count(topic.records),
            _bytes(topic.size_bytes),
            _count(topic.lag),
            _late(topic.late_ms),
        )
        for topic in sorted(seen.topics.values(), key=rank)
    ]


def group_rows(seen: Snapshot) -> list[tuple[str, ...]]:
    """Those that are furthest behind first; whoever cannot be judged before those that can."""
    if isinstance(seen.groups, Unknown):
        return [_row(f"not known: {seen.groups.reason}", *[""] * 6)]

    def rank(group: GroupSeen) -> tuple[bool, int, str]:
        return group.lag is not None, -(group.lag or 0), group.group_id

    return [
        _row(
            group.group_id,
            group.state,
            group.members,
            _count(group.lag),
            _late(group.late_ms),
            _rate(group.rate),
            ", ".join(group.topics[:3]) + (", ..." if len(group.topics) > 3 else ""),
        )
        for group in sorted(seen.groups.values(), key=rank)
    ]


def move_rows(seen: Snapshot) -> list[tuple[str, ...]]:
    if isinstance(seen.health, Unknown):
        return [_row(f"not known: {seen.health.reason}", *[""] * 4)]
    found = []
    for partition, move in sorted(seen.health.moving.items()):
        topic = seen.topics.get(partition.topic)
        size = None
        for each in () if topic is None else topic.partitions:
            if each.state.partition == partition.partition:
                size = each.size_bytes
        lags = [seen.health.lagging.get((partition, broker)) for broker in move.adding]
        behind = None if any(lag is None for lag in lags) else sum(lag or 0 for lag in lags)
        found.append(
            _row(
                partition,
                _brokers(move.removing),
                _brokers(move.adding),
                _bytes(size),
                _count(behind),
            )
        )
    return found


SCREENS: Final = (
    Screen(
        "1",
        "Brokers",
        (
            "BROKER", "STATE", "ROLE", "LEADERS", "REPLICAS", "OUT OF SYNC", "BYTES", "IN", "DISK FULL IN",
            "LOOP MS",
        ),
        broker_rows,
    ),
    Screen(
        "2",
        "Topics",
        ("TOPIC", "STATE", "PARTITIONS", "IN", "OUT", "RECORDS", "BYTES", "LAG", "LATE"),
        topic_rows,
    ),
    Screen("3", "Groups", ("GROUP", "STATE", "MEMBERS", "LAG", "LATE", "RATE", "TOPICS"), group_rows),
    Screen("4", "Moves", ("PARTITION", "FROM", "TO", "BYTES", "RECORDS LEFT"), move_rows),
)  # fmt: skip


def _row(*cells: object) -> tuple[str, ...]:
    """Names are others' words: none of them moves the cursor."""
    return tuple(visible(str(cell)) for cell in cells)


def _count(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _rate(rate: float | None) -> str:
    return UNKNOWN if rate is None else f"{rate:,.0f}/s"


def _bytes(size: int | None) -> str:
    return UNKNOWN if size is None else f"{size / 1e6:,.1f} MB"


def _late(milliseconds: int | None) -> str:
    return UNKNOWN if milliseconds is None else duration_text(milliseconds)


def _days(left: Sequence[float | None]) -> str:
    known = [days for days in left if days is not None]
    return f"{min(known):,.0f} d" if known else UNKNOWN


def _brokers(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or UNKNOWN
