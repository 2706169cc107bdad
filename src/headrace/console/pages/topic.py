"""One topic: where its partitions are, and who reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from headrace.client.reassignments import Reassignment
from headrace.console.pages.page import PER_PAGE, NotThere, Page, Scene, number_in
from headrace.console.pages.tier_rows import TierRow, tier_row
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.history import Track, coarser
from headrace.observe.snapshot import PartitionSeen, Snapshot, TopicSeen, certified_until

ROWS: Final = 200


class Cell(StrEnum):
    """What a broker is to a partition."""

    NONE = ""
    LEADER = "leader"
    IN_SYNC = "in sync"
    ELIGIBLE = "eligible"
    OUT = "out of sync"
    OFFLINE = "offline"
    ARRIVING = "arriving"
    LEAVING = "leaving"


class PartitionRow(NamedTuple):
    partition: int
    condition: str
    leader: int
    epoch: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    first: int | None
    end: int | None
    held: bool
    """An open transaction keeps readers of committed records from its end."""
    size_bytes: int | None
    rate: float | None
    cells: Sequence[Cell]


class Reader(NamedTuple):
    group: str
    members: int
    lag: int | None
    late_ms: int | None


class TopicView(NamedTuple):
    name: str
    internal: bool
    condition: str
    records: int | None
    size_bytes: int | None
    rate_in: float | None
    rate_out: float | None
    replication_factor: int
    partitions: int
    brokers: Sequence[int]
    """The columns of the grid: those with a replica of it."""
    dead: Sequence[int]
    rows: Sequence[PartitionRow]
    number: int
    pages: int
    readers: Sequence[Reader]
    more_readers: int
    certified_until_ms: int | None
    is_audited: bool
    reads: str
    """Why nobody knows who reads; empty where it is known."""
    is_led_elsewhere: bool
    """Some partition is not led by its first replica."""
    trend_in: Sequence[float | None]
    trend_out: Sequence[float | None]
    tier: TierRow | None
    """Of a topic with history in an object store."""


def topic(scene: Scene, name: str) -> Page:
    seen = scene.snapshot
    found = topic_in(seen, name)
    moving = {} if isinstance(seen.health, Unknown) else seen.health.moving
    holders = {holder for each in found.partitions for holder in each.state.replicas}
    holders |= {each for move in _moves_of(found, moving).values() for each in move.adding}
    brokers = sorted(holders)
    dead = [number for number in brokers if _is_dead(seen, number)]
    pages = max(1, -(-len(found.partitions) // ROWS))
    number = min(number_in(scene.query, "page", 1, least=1), pages)
    shown = found.partitions[(number - 1) * ROWS : number * ROWS]
    verdicts = seen.audit.get(name, ()) if isinstance(seen.audit, Mapping) else ()
    readers = _readers(seen, found)
    view = TopicView(
        name,
        found.internal,
        found.condition.value,
        found.records,
        found.size_bytes,
        found.rate_in,
        found.rate_out,
        found.replication_factor,
        len(found.partitions),
        brokers,
        dead,
        [_row(name, each, brokers, dead, moving) for each in shown],
        number,
        pages,
        readers[:PER_PAGE],
        max(0, len(readers) - PER_PAGE),
        certified_until(verdicts),
        bool(verdicts),
        "" if seen.commits is None else seen.commits.reason,
        any(each.state.replicas and each.state.leader != each.state.replicas[0] for each in found.partitions),
        coarser(scene.history.of(Track.IN, name, seen.at_ms), 90, mean=True),
        coarser(scene.history.of(Track.OUT, name, seen.at_ms), 90, mean=True),
        tier_row(seen, name, seen.tiers[name])
        if isinstance(seen.tiers, Mapping) and name in seen.tiers
        else None,
    )
    return Page("topic.html", name, "topics", view)


def topic_in(seen: Snapshot, name: str) -> TopicSeen:
    """Raises NotThere."""
    found = seen.topics.get(name)
    if found is None:
        raise NotThere(f"There is no topic {name}, or you may not see it.")
    return found


def _moves_of(
    found: TopicSeen, moving: Mapping[TopicPartition, Reassignment]
) -> dict[TopicPartition, Reassignment]:
    places = (TopicPartition(found.name, each.state.partition) for each in found.partitions)
    return {place: moving[place] for place in places if place in moving}


def _is_dead(seen: Snapshot, number: int) -> bool:
    broker = seen.brokers.get(number)
    return broker is None or broker.state != "alive"


def _row(
    name: str,
    seen: PartitionSeen,
    brokers: Sequence[int],
    dead: Sequence[int],
    moving: Mapping[TopicPartition, Reassignment],
) -> PartitionRow:
    state, ends = seen.state, seen.ends
    move = moving.get(TopicPartition(name, state.partition))
    return PartitionRow(
        state.partition,
        seen.condition.value,
        state.leader,
        state.leader_epoch,
        state.replicas,
        state.isr,
        None if ends is None else ends.first,
        None if ends is None else ends.end,
        ends is not None and ends.stable < ends.end,
        seen.size_bytes,
        seen.rate,
        [cell_of(seen, broker, dead, move) for broker in brokers],
    )


def cell_of(seen: PartitionSeen, broker: int, dead: Sequence[int], move: Reassignment | None) -> Cell:
    state = seen.state
    if broker not in state.replicas:
        return Cell.NONE
    if broker == state.leader and broker not in state.offline:
        return Cell.LEADER
    if broker in state.offline or broker in dead:
        return Cell.OFFLINE
    if move is not None and broker in move.adding:
        return Cell.ARRIVING
    if move is not None and broker in move.removing:
        return Cell.LEAVING
    if broker in state.isr:
        return Cell.IN_SYNC
    return Cell.ELIGIBLE if broker in state.eligible else Cell.OUT


def _readers(seen: Snapshot, found: TopicSeen) -> list[Reader]:
    if isinstance(seen.groups, Unknown):
        return []
    readers = []
    for name in found.groups:
        group = seen.groups.get(name)
        if group is None or isinstance(group.rails, Unknown):
            continue
        rails = [rail for rail in group.rails if rail.partition.topic == found.name]
        lags, lates = [rail.lag for rail in rails], [rail.late_ms for rail in rails]
        readers.append(
            Reader(
                name,
                group.members,
                None if None in lags else sum(lag for lag in lags if lag is not None),
                None if None in lates else max((late for late in lates if late is not None), default=0),
            )
        )
    return sorted(readers, key=lambda reader: (-(reader.late_ms or 0), reader.group))
