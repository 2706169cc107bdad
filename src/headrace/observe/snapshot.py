"""What is known of a cluster at one moment. Everybody who watches looks at the same one; nobody changes it.

A number that could not be had is None, and a part that could not be had is an Unknown with the reason: who
shows it says so, and never shows zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from headrace.audit.verdict import Verdict
from headrace.client.health import ClusterView, Health
from headrace.client.log_dirs import LogDirectory
from headrace.client.topics import PartitionState
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import Ends
from headrace.observe.tier_seen import TierSeen

_NONE: Final[Mapping[Any, Any]] = MappingProxyType({})


class State(StrEnum):
    """Of a topic or a partition, best first."""

    WELL = "well"
    #: Everything works, with fewer copies than asked for.
    THIN = "under-replicated"
    #: Writes with acks=all are refused.
    UNWRITABLE = "unwritable"
    #: Without a leader: neither read nor written.
    OFFLINE = "offline"


WORST_FIRST: Final = tuple(reversed(State))


class PartitionSeen(NamedTuple):
    state: PartitionState
    condition: State
    ends: Ends | None
    """None: its leader could not be asked."""
    size_bytes: int | None
    """Of its largest replica."""
    rate: float | None
    """Records a second that came in since the look before."""

    @property
    def records(self) -> int | None:
        """Offsets between the first and the end: with compaction and transactions not all are records."""
        return None if self.ends is None else max(0, self.ends.end - self.ends.first)


class TopicSeen(NamedTuple):
    name: str
    internal: bool
    condition: State
    partitions: Sequence[PartitionSeen]
    size_bytes: int | None
    """Of all replicas."""
    records: int | None
    rate_in: float | None
    rate_out: float | None
    """Records a second that groups committed since the look before."""
    groups: Sequence[str]
    """Those with a commit in it."""
    lag: int | None
    """Of the group that is furthest behind; None where no group reads it, or that is not known."""
    late_ms: int | None
    """The same in time."""

    @property
    def replication_factor(self) -> int:
        return max((len(each.state.replicas) for each in self.partitions), default=0)


class Rail(NamedTuple):
    """A partition as a group sees it."""

    partition: TopicPartition
    committed: int | None
    pending: bool
    ends: Ends | None
    client: str
    """Of the member that has it: client id and host; empty where none has."""
    late_ms: int | None
    """How old the first record is that was not read; 0 where there is none; None where nobody could tell."""

    @property
    def lag(self) -> int | None:
        """A partition without a commit counts as a whole: nothing of it was read for good."""
        if self.ends is None:
            return None
        begin = self.ends.first if self.committed is None else self.committed
        return max(0, self.ends.end - begin)

    @property
    def missed(self) -> int:
        """Records that were removed before the group had read them."""
        if self.committed is None or self.ends is None:
            return 0
        return max(0, self.ends.first - self.committed)

    @property
    def held(self) -> bool:
        """An open transaction keeps records from readers of committed ones."""
        return self.ends is not None and self.ends.stable < self.ends.end


class GroupSeen(NamedTuple):
    group_id: str
    kind: str
    state: str
    protocol_type: str
    coordinator: int
    members: int
    clients: Sequence[str]
    rails: Sequence[Rail] | Unknown
    rate: float | None
    """Records a second that were committed since the look before."""
    lag: int | None
    """None where the ends of one of its partitions are not known."""
    late_ms: int | None
    """Of the partition that is the furthest behind; None where one of them is not known."""

    @property
    def topics(self) -> list[str]:
        rails = () if isinstance(self.rails, Unknown) else self.rails
        return sorted({rail.partition.topic for rail in rails})


class BrokerSeen(NamedTuple):
    broker_id: int
    address: str
    rack: str | None
    state: str
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    size_bytes: int | None
    rate_in: float | None
    """Records a second into the partitions that it leads."""
    directories: Sequence[LogDirectory]
    days_left: Sequence[float | None]
    """Of each directory, until it is full; None where it does not grow, or nobody knows."""
    figures: Mapping[str, str]


class Totals(NamedTuple):
    topics: int
    """Those of users."""
    partitions: int
    records: int | None
    size_bytes: int | None
    rate_in: float | None
    rate_out: float | None


class Snapshot(NamedTuple):
    number: int
    """Counts looks: another number is another snapshot."""
    at_ms: int
    took_seconds: float
    view: ClusterView
    health: Health | Unknown
    topics: Mapping[str, TopicSeen]
    """By name, in that order, with internal ones."""
    groups: Mapping[str, GroupSeen] | Unknown
    brokers: Mapping[int, BrokerSeen]
    totals: Totals
    silent: Mapping[int, str] = _NONE
    """Brokers that could not be asked for the ends of what they lead, and why."""
    audit: Mapping[str, Sequence[Verdict]] | Unknown | None = None
    """By topic, in the order of windows; None: there is no audit."""
    commits: Unknown | None = None
    """Why nobody knows who reads what; None where it is known."""
    files_at_ms: int = 0
    """When the log directories were asked: less often than everything else."""

    tiers: Mapping[str, TierSeen] | Unknown = _NONE
    """Topics with history in an object store, by name."""
    untold_tiers: Mapping[int, str] = _NONE
    """Leaders of such topics that do not tell how much lies where, and why."""

    is_partial: bool = False
    """Only what somebody may see of it: that all is well with that says nothing of the rest."""


def certified_until(verdicts: Sequence[Verdict]) -> int | None:
    """The end of the last window before which every window is certified; `verdicts` in their order."""
    until = None
    for verdict in verdicts:
        if verdict.state != "certified":
            break
        until = verdict.window_ms + verdict.length_ms
    return until
