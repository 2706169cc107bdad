"""Looks at clusters that do not exist: empty, small, huge and broken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from headrace.audit.tally import Tally
from headrace.audit.verdict import Difference, Kind, State, Verdict
from headrace.client import health
from headrace.client.broker_health import BrokerHealth
from headrace.client.group_offsets import Committed
from headrace.client.groups import Group, Member
from headrace.client.health import BrokerView, ClusterView, Observation
from headrace.client.log_dirs import LogDirectory, ReplicaFiles
from headrace.client.topics import PartitionState, TopicState
from headrace.config.health import FENCED
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.building import build
from headrace.observe.ends import AllEnds, Ends
from headrace.observe.history import History
from headrace.observe.look import Files, Look
from headrace.observe.snapshot import Snapshot

NOW_MS: Final = 1_760_000_000_000
MINUTE_MS: Final = 60_000
GIGABYTE: Final = 10**9
FIGURES: Final = {
    "zookeeper.answers": "true",
    "version": "0.1.0",
    "build": "compiled",
    "uptime.seconds": "100000",
    "loop.lag.p99.ms": "3",
}


def topic(name: str, count: int, brokers: Sequence[int], replicas: int, **lost: Any) -> TopicState:
    """`dead`: brokers out of every ISR; a partition whose replicas all are has no leader."""
    dead = frozenset(lost.get("dead", ()))
    partitions = []
    for index in range(count):
        held = [brokers[(index + at) % len(brokers)] for at in range(min(replicas, len(brokers)))]
        isr = [each for each in held if each not in dead]
        leader = isr[0] if isr else -1
        partitions.append(PartitionState(index, leader, 3, held, isr or held[:1], [], ()))
    return TopicState(name, UUID(int=len(name)), name.startswith("__"), partitions)


def view(count: int, dead: Sequence[int] = ()) -> ClusterView:
    brokers = [
        BrokerView(number, f"kafka{number}", 9092, f"rack-{number % 3}", number not in dead, True)
        for number in range(1, count + 1)
    ]
    return ClusterView("made-up", 1, brokers)


def files(topics: Sequence[TopicState], brokers: int, dead: Sequence[int] = (), size: int = 10**6) -> Files:
    held: dict[int, dict[TopicPartition, ReplicaFiles]] = {number: {} for number in range(1, brokers + 1)}
    for each in topics:
        for state in each.partitions:
            for holder in state.replicas:
                held[holder][TopicPartition(each.name, state.partition)] = ReplicaFiles(size, 0)
    return Files(
        NOW_MS,
        {
            number: [LogDirectory("/data", False, 1000 * GIGABYTE, 400 * GIGABYTE, replicas)]
            for number, replicas in held.items()
            if number not in dead
        },
        list(dead),
    )


def look(
    brokers: int, topics: Sequence[TopicState], *, dead: Sequence[int] = (), at: int = 0, **changes: Any
) -> Look:
    """The `at`-th look of five seconds: each partition has 1,000 records and 50 more with each look."""
    cluster = view(brokers, dead)
    told = {
        number: BrokerHealth(number not in dead, FIGURES if number not in dead else {})
        for number in range(1, brokers + 1)
    }
    its_files = files(topics, brokers, dead)
    ends = {
        TopicPartition(each.name, state.partition): Ends(0, 1000 + 50 * at, 1000 + 50 * at)
        for each in topics
        for state in each.partitions
        if state.leader >= 0 and state.leader not in dead
    }
    observation = Observation(
        cluster,
        list(topics),
        {each.name: 2 if brokers > 2 else 1 for each in topics},
        {},
        {},
        told,
        dict(its_files.directories),
    )
    made = Look(
        NOW_MS + 5000 * at,
        100.0 + 5 * at,
        0.2,
        cluster,
        topics,
        health.judge(observation),
        AllEnds(ends, dict.fromkeys(dead, "it does not answer")),
        its_files,
        {},
        {},
        {},
        None,
    )
    return made._replace(**changes)


def group(name: str, owned: Sequence[TopicPartition] = (), state: str = "Stable") -> Group:
    members = [Member(f"{name}-1-uuid", None, f"{name}-1", "10.0.0.7", owned)] if owned else []
    return Group(name, "consumer", state if owned else "Empty", "consumer", "uniform", 1, members, 4, 4)


def committed(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Committed]:
    return {partition: Committed(offset, 3, "", False) for partition, offset in offsets.items()}


def verdict(name: str, window: int, state: State = State.CERTIFIED) -> Verdict:
    count = 3600 if name == "orders" else 1800
    tiers = {tier: Tally(count, 7) for tier in ("producers", "log", "lake")}
    differences: tuple[Difference, ...] = ()
    if state is State.DIFFERENT:
        tiers["lake"] = Tally(count - 3, 6)
        differences = (Difference("lake", "log", 0, Kind.LOST, count - 3, count),)
    reasons = ("the lake has not loaded it yet",) if state in (State.OPEN, State.INCOMPLETE) else ()
    begin = NOW_MS // MINUTE_MS * MINUTE_MS - (240 - window) * MINUTE_MS
    return Verdict(name, begin, MINUTE_MS, state, tiers, differences, reasons, NOW_MS, 1)


def empty_look(at: int = 0) -> Look:
    return look(1, [], at=at)


def small_look(at: int = 0) -> Look:
    """Three brokers, three topics, two groups: one keeps up, the other stands still."""
    topics = [topic("orders", 6, (1, 2, 3), 3), topic("clicks", 3, (2, 3, 1), 3), topic("empty", 1, (3,), 1)]
    orders = [TopicPartition("orders", index) for index in range(6)]
    made = look(3, topics, at=at)
    old = dict.fromkeys(orders, 400)
    verdicts = {
        (name, each.window_ms): each
        for name in ("orders", "clicks")
        for window in range(240)
        for each in [verdict(name, window, _state(name, window))]
    }
    return made._replace(
        groups={"billing": group("billing", orders), "reports": group("reports")},
        committed={
            "billing": committed(dict.fromkeys(orders, 1000 + 50 * at)),
            "reports": committed(old),
        },
        times={(partition, 400): NOW_MS - 3_600_000 for partition in orders},
        verdicts=verdicts,
    )


def _state(name: str, window: int) -> State:
    if name == "orders" and window == 190:
        return State.DIFFERENT
    return State.OPEN if window >= 238 else State.CERTIFIED


def huge_look(at: int = 0, topics: int = 10_000, groups: int = 2000, brokers: int = 200) -> Look:
    numbers = range(1, brokers + 1)
    made = [
        topic(f"team-{number % 40:02}.stream-{number:05}", 1, [number % brokers + 1, *numbers], 3)
        for number in range(topics)
    ]
    names = [each.name for each in made]
    offsets = {
        f"readers-{number:04}": {
            TopicPartition(names[(number * 5 + k) % topics], 0): 990 + number % 10 for k in range(5)
        }
        for number in range(groups)
    }
    return look(
        brokers,
        made,
        at=at,
        groups={name: group(name, list(theirs)) for name, theirs in offsets.items()},
        committed={name: committed(theirs) for name, theirs in offsets.items()},
        times={
            (partition, offset): NOW_MS - 5000
            for theirs in offsets.values()
            for partition, offset in theirs.items()
        },
    )


def broken_look(at: int = 0) -> Look:
    """Two of three brokers are gone, groups cannot be asked, one topic has no leader any more."""
    dead = (2, 3)
    topics = [
        topic("orders", 6, (1, 2, 3), 3, dead=dead),
        topic("lost", 2, (2, 3), 2, dead=dead),
        topic("<script>alert(1)</script>", 1, (1,), 1),
    ]
    fenced = json.dumps({"2": [NOW_MS - 60_000, "it did not answer"]})
    made = look(3, topics, dead=dead, at=at)
    silence = Unknown("committed offsets: the coordinator of group billing is not available")
    assert not isinstance(made.health, Unknown)
    told = {**made.health.brokers, 1: BrokerHealth(True, {**FIGURES, FENCED: fenced})}
    return made._replace(
        groups={"billing": group("billing")},
        committed=silence,
        health=made.health._replace(brokers=told),
        verdicts=Unknown("the audit's verdicts: partition headrace-audit-certificates-0 has no leader"),
    )


def snapshot_of(*looks: Look, history: History | None = None) -> Snapshot:
    """Of the last of them, with the others before it."""
    before: Look | None = None
    history = History() if history is None else history
    found: Snapshot | None = None
    for number, each in enumerate(looks, start=1):
        found, before = build(each, before, history, number), each
    assert found is not None
    return found
