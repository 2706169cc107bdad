"""What checks may know of a cluster. Each fact that could not be had is an Unknown with the reason."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from headrace.client.broker_health import BrokerHealth
from headrace.client.health import ClusterView, Health
from headrace.client.links import LinkView
from headrace.client.log_dirs import LogDirectory
from headrace.client.open_transactions import OpenTransaction
from headrace.client.topics import TopicState
from headrace.core.ids import TopicPartition
from headrace.doctor.model import NotKnown, Unknown
from headrace.doctor.protection import Placed

LOCALHOST: Final = "localhost"
NEARLY: Final = 0.8
"""Of the time that records are kept: what is older is about to be removed."""
HOUR_MS: Final = 3_600_000
TAIL: Final = 100
"""Offsets before the end that may be marks of transactions alone: they are read before they are judged."""
_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


class Setting(NamedTuple):
    value: str | None
    is_own: bool
    """Of a topic: set for it alone. Of a broker: set anywhere, in its file or at run time."""
    sensitive: bool = False
    is_dynamic: bool = False
    """Of a broker: given to it alone while it ran."""


class Clock(NamedTuple):
    """By how much a broker's clock is ahead of this machine's: within these bounds, which the time that the
    question took leaves open."""

    least_ms: int
    most_ms: int


class GroupLook(NamedTuple):
    """A group at one moment: what changes with each rebalance."""

    state: str
    epoch: int | None
    """Of consumer groups; None of classic ones, which do not tell their generation."""


class GroupFacts(NamedTuple):
    group_id: str
    state: str
    members: int
    subscribes: bool
    """Its members share topics among themselves. Jobs that only commit make a group that does not."""
    committed: Mapping[TopicPartition, int]
    topics: frozenset[str] = frozenset()
    """That its members subscribe to or own."""

    @property
    def reads(self) -> set[str]:
        return {*self.topics, *(partition.topic for partition in self.committed)}


class Ends(NamedTuple):
    first: int
    end: int


class Audit(NamedTuple):
    """When the last record came, in milliseconds since 1970; None where there is none."""

    last_event_ms: int | None
    last_verdict_ms: int | None


class Facts(NamedTuple):
    now_ms: int
    view: ClusterView
    topics: Sequence[TopicState]
    """With internal ones."""
    health: Health | Unknown
    brokers: Mapping[int, BrokerHealth]
    """What each broker that is alive tells of itself."""
    settings: Mapping[int, Mapping[str, Setting]] | Unknown
    """Of each broker that answers."""
    topic_settings: Mapping[str, Mapping[str, Setting]] | Unknown
    directories: Mapping[int, Sequence[LogDirectory]] | Unknown
    """With all replicas that are in them."""
    clocks: Mapping[int, Clock] = _NONE
    groups: Mapping[str, GroupFacts] | Unknown = _NONE
    looks: Sequence[Mapping[str, GroupLook]] | Unknown = ()
    """At groups with members, one after the other; none or one tells nothing of change."""
    look_seconds: float = 0.0
    """Between the first look and the last."""
    ends: Mapping[TopicPartition, Ends] | Unknown = _NONE
    nearly_lost: Mapping[TopicPartition, int] | Unknown = _NONE
    """The first offset that retention by time leaves alone for some time yet, of partitions with commits."""
    an_hour_ago: Mapping[TopicPartition, int] | Unknown = _NONE
    """The first offset of the last hour, of partitions with commits."""
    last_records: Mapping[TopicPartition, int] | Unknown = _NONE
    """The last that can be read, where the last offsets decide of a finding; -1: none after the commit."""
    hanging: Sequence[OpenTransaction] | Unknown = ()
    protection: Sequence[Placed] | Unknown = ()
    links: Sequence[LinkView] | Unknown = ()
    audit: Audit | Unknown | None = None
    """None: there is none."""

    @property
    def alive(self) -> list[int]:
        return [broker.broker_id for broker in self.view.brokers if broker.alive]

    @property
    def user_topics(self) -> list[TopicState]:
        return [topic for topic in self.topics if not topic.internal]

    @property
    def is_local(self) -> bool:
        """On one machine that nobody else reaches: a cluster to develop with."""
        return all(_is_loopback(broker.host) for broker in self.view.brokers if broker.host)

    def unread(self, group: GroupFacts, bounds: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """How many offsets before each bound the group has not read. What may be marks of transactions alone
        is left out; `known(facts.last_records)` says whether that was looked at."""
        ends = {} if isinstance(self.ends, Unknown) else self.ends
        last = None if isinstance(self.last_records, Unknown) else self.last_records
        found = {}
        for partition, offset in group.committed.items():
            at, bound = ends.get(partition), bounds.get(partition)
            if at is None or bound is None or max(offset, at.first) >= min(bound, at.end):
                continue
            is_tail = at.end - offset <= TAIL
            if is_tail and (last is None or offset > last.get(partition, offset)):
                continue
            found[partition] = bound - max(offset, at.first)
        return found

    def figures(self, name: str) -> Iterator[tuple[int, str]]:
        """Of each broker that tells it. NotKnown after those, if one does not."""
        silent = []
        for number, each in self.brokers.items():
            if name in each.figures:
                yield number, each.figures[name]
            else:
                silent.append(number)
        if silent:
            raise NotKnown(f"{brokers(silent)} did not tell")


def brokers(numbers: Sequence[int]) -> str:
    """broker 1, or brokers 1, 2"""
    return f"broker{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _is_loopback(host: str) -> bool:
    if host == LOCALHOST:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def kept_ms(settings: Mapping[str, Setting]) -> int | None:
    """How long a topic keeps records; None: for ever, or it keeps the last of each key."""
    retention, policy = settings.get("retention.ms"), settings.get("cleanup.policy")
    if retention is None or policy is None or "delete" not in (policy.value or ""):
        return None
    value = int(retention.value or -1)
    return value if value >= 0 else None
