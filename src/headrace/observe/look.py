"""What was asked in one look, as it was answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.audit.verdict import Verdict
from headrace.client.errors import Refused
from headrace.client.group_offsets import Committed
from headrace.client.groups import Group
from headrace.client.health import ClusterView, Health
from headrace.client.log_dirs import LogDirectory
from headrace.client.topics import TopicState
from headrace.core.ids import TopicPartition
from headrace.doctor.model import Unknown
from headrace.observe.ends import AllEnds
from headrace.observe.record_times import Place
from headrace.observe.tiers import Tiers


class Files(NamedTuple):
    """Of the brokers that answered. Asked for less often than the rest: an answer names every replica."""

    at_ms: int
    directories: Mapping[int, Sequence[LogDirectory]]
    silent: Sequence[int]
    """Brokers that should have told, and did not."""


class Look(NamedTuple):
    at_ms: int
    seconds: float
    """By a clock that is never set, for rates."""
    took_seconds: float
    view: ClusterView
    topics: Sequence[TopicState]
    health: Health | Unknown
    all_ends: AllEnds
    files: Files | Unknown
    groups: Mapping[str, Group | Refused] | Unknown
    committed: Mapping[str, Mapping[TopicPartition, Committed]] | Unknown
    times: Mapping[Place, int]
    verdicts: Mapping[tuple[str, int], Verdict] | Unknown | None
    tiers: Tiers | Unknown = Tiers({})
