"""From the answers of a look to a snapshot. Rates come from the look before; nothing here asks anybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from headrace.audit.verdict import Verdict
from headrace.client.health import Health
from headrace.client.topics import PartitionState, TopicState
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import Ends
from headrace.observe.group_building import Commits, groups_of
from headrace.observe.history import History, Track
from headrace.observe.look import Files, Look
from headrace.observe.snapshot import (
    WORST_FIRST,
    BrokerSeen,
    GroupSeen,
    PartitionSeen,
    Snapshot,
    State,
    TopicSeen,
    Totals,
)
from headrace.observe.tier_seen import tiers_seen

N = TypeVar("N", int, float)


def build(look: Look, before: Look | None, history: History, number: int) -> Snapshot:
    seconds = 0.0 if before is None else look.seconds - before.seconds
    sizes, replica_bytes = _sizes(look.files)
    conditions = _conditions(look)
    groups = groups_of(look, before, seconds)
    readers = readers_of(groups)
    outflow = Commits(look, before, seconds)
    topics = {
        state.name: _topic(
            state,
            [
                _partition(state.name, each, look, before, seconds, sizes, conditions)
                for each in state.partitions
            ],
            readers.get(state.name, ()),
            outflow.rate_of(state.name),
            None if isinstance(look.files, Unknown) else _total_bytes(state, look.files, replica_bytes),
        )
        for state in sorted(look.topics)
    }
    snapshot = Snapshot(
        number,
        look.at_ms,
        look.took_seconds,
        look.view,
        look.health,
        topics,
        groups,
        _brokers(look, topics),
        _totals(topics.values(), outflow.rate),
        look.all_ends.silent,
        _audit(look.verdicts),
        next((each for each in (look.groups, look.committed) if isinstance(each, Unknown)), None),
        0 if isinstance(look.files, Unknown) else look.files.at_ms,
        tiers_seen(look.tiers, look.topics, look.all_ends.ends),
        {} if isinstance(look.tiers, Unknown) else look.tiers.untold,
    )
    _remember(snapshot, history)
    return snapshot


def _conditions(look: Look) -> Mapping[TopicPartition, State]:
    """Of those with which not all is well, as `headrace cluster status` judges them."""
    if isinstance(look.health, Unknown):
        return {}
    found = dict.fromkeys(look.health.under_replicated, State.THIN)
    found.update(dict.fromkeys(look.health.under_min_isr, State.UNWRITABLE))
    found.update(dict.fromkeys(look.health.offline, State.OFFLINE))
    return found


def _condition(
    state: PartitionState, partition: TopicPartition, conditions: Mapping[TopicPartition, State]
) -> State:
    if state.leader < 0:
        return State.OFFLINE
    return conditions.get(partition, State.WELL)


def _sizes(
    files: Files | Unknown,
) -> tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
    """Of each partition the largest replica, and the sum of all."""
    largest: dict[TopicPartition, int] = {}
    whole: dict[TopicPartition, int] = {}
    if not isinstance(files, Unknown):
        for directories in files.directories.values():
            for directory in directories:
                for partition, replica in directory.replicas.items():
                    largest[partition] = max(largest.get(partition, 0), replica.size)
                    whole[partition] = whole.get(partition, 0) + replica.size
    return largest, whole


def _total_bytes(state: TopicState, files: Files, replica_bytes: Mapping[TopicPartition, int]) -> int | None:
    """None where a broker that holds some of it did not tell."""
    total = 0
    for each in state.partitions:
        partition = TopicPartition(state.name, each.partition)
        if partition not in replica_bytes or any(holder in files.silent for holder in each.replicas):
            return None
        total += replica_bytes[partition]
    return total


def _partition(
    name: str,
    state: PartitionState,
    look: Look,
    before: Look | None,
    seconds: float,
    sizes: Mapping[TopicPartition, int],
    conditions: Mapping[TopicPartition, State],
) -> PartitionSeen:
    partition = TopicPartition(name, state.partition)
    ends = look.all_ends.ends.get(partition)
    earlier = None if before is None else before.all_ends.ends.get(partition)
    return PartitionSeen(
        state,
        _condition(state, partition, conditions),
        ends,
        sizes.get(partition),
        _rate(ends, earlier, seconds),
    )


def _rate(ends: Ends | None, earlier: Ends | None, seconds: float) -> float | None:
    """An end that went back is another topic of the same name, or lost records: no rate can be told."""
    if ends is None or earlier is None or seconds <= 0 or ends.end < earlier.end:
        return None
    return (ends.end - earlier.end) / seconds


def _topic(
    state: TopicState,
    partitions: Sequence[PartitionSeen],
    readers: Sequence[tuple[GroupSeen, int | None, int | None]],
    rate_out: float | None,
    size_bytes: int | None,
) -> TopicSeen:
    present = {each.condition for each in partitions}
    return TopicSeen(
        state.name,
        state.internal,
        next((each for each in WORST_FIRST if each in present), State.WELL),
        partitions,
        size_bytes,
        total(each.records for each in partitions),
        total(each.rate for each in partitions),
        rate_out,
        [group.group_id for group, _, _ in readers],
        furthest(lag for _, lag, _ in readers),
        furthest(late for _, _, late in readers),
    )


def total(values: Iterable[N | None]) -> N | None:
    """None where one of them is not known: a sum without it would be wrong."""
    whole: Any = 0
    for each in values:
        if each is None:
            return None
        whole += each
    found: N = whole
    return found


def furthest(values: Iterable[int | None]) -> int | None:
    """None where there is none, or one that is not known might be further."""
    found = list(values)
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def readers_of(
    groups: Mapping[str, GroupSeen] | Unknown,
) -> Mapping[str, list[tuple[GroupSeen, int | None, int | None]]]:
    """By topic: who has a commit in it, and how far behind it is there."""
    found: defaultdict[str, list[tuple[GroupSeen, int | None, int | None]]] = defaultdict(list)
    if isinstance(groups, Unknown):
        return found
    for group in groups.values():
        if isinstance(group.rails, Unknown):
            continue
        for topic, rails in groupby(group.rails, key=lambda rail: rail.partition.topic):
            theirs = list(rails)
            if any(rail.committed is not None for rail in theirs):
                late = furthest(rail.late_ms for rail in theirs)
                found[topic].append((group, total(rail.lag for rail in theirs), late))
    return found


def _brokers(look: Look, topics: Mapping[str, TopicSeen]) -> Mapping[int, BrokerSeen]:
    rates: defaultdict[int, list[float | None]] = defaultdict(list)
    leaders: defaultdict[int, int] = defaultdict(int)
    replicas: defaultdict[int, int] = defaultdict(int)
    out_of_sync: defaultdict[int, int] = defaultdict(int)
    for topic in topics.values():
        for seen in topic.partitions:
            rates[seen.state.leader].append(seen.rate)
            leaders[seen.state.leader] += 1
            for holder in seen.state.replicas:
                replicas[holder] += 1
                out_of_sync[holder] += holder not in seen.state.isr
    health = None if isinstance(look.health, Unknown) else look.health
    view = look.view if health is None else health.view
    files = {} if isinstance(look.files, Unknown) else look.files.directories
    found = {}
    for broker in view.brokers:
        number = broker.broker_id
        directories = files.get(number, ())
        told = None if health is None else health.brokers.get(number)
        found[number] = BrokerSeen(
            number,
            broker.address,
            broker.rack,
            broker.state,
            number == view.controller,
            leaders[number],
            replicas[number],
            out_of_sync[number],
            sum(replica.size for each in directories for replica in each.replicas.values())
            if number in files
            else None,
            total(rates[number]),
            directories,
            [_days_left(health, number, index) for index in range(len(directories))],
            {} if told is None else told.figures,
        )
    return found


def _days_left(health: Health | None, broker_id: int, index: int) -> float | None:
    if health is None:
        return None
    theirs = health.directories.get(broker_id, ())
    return health.days_left(broker_id, theirs[index]) if index < len(theirs) else None


def _totals(topics: Iterable[TopicSeen], rate_out: float | None) -> Totals:
    users = [topic for topic in topics if not topic.internal]
    return Totals(
        len(users),
        sum(len(topic.partitions) for topic in users),
        total(topic.records for topic in users),
        total(topic.size_bytes for topic in users),
        total(topic.rate_in for topic in users),
        rate_out,
    )


def _audit(
    verdicts: Mapping[tuple[str, int], Verdict] | Unknown | None,
) -> Mapping[str, Sequence[Verdict]] | Unknown | None:
    if verdicts is None or isinstance(verdicts, Unknown):
        return verdicts
    found: dict[str, list[Verdict]] = {}
    for key in sorted(verdicts):
        found.setdefault(key[0], []).append(verdicts[key])
    return found


def _remember(snapshot: Snapshot, history: History) -> None:
    at_ms = snapshot.at_ms

    def add(track: Track, name: str, value: float | None) -> None:
        if value is not None:
            history.add(track, name, at_ms, value)

    add(Track.IN, "", snapshot.totals.rate_in)
    add(Track.OUT, "", snapshot.totals.rate_out)
    for topic in snapshot.topics.values():
        add(Track.IN, topic.name, topic.rate_in)
        add(Track.OUT, topic.name, topic.rate_out)
    for track in (Track.IN, Track.OUT):
        history.keep(track, ("", *snapshot.topics))
    if isinstance(snapshot.groups, Unknown):
        return
    for group in snapshot.groups.values():
        add(Track.LAG, group.group_id, group.lag)
        add(Track.LATE, group.group_id, group.late_ms)
    for track in (Track.LAG, Track.LATE):
        history.keep(track, snapshot.groups)
