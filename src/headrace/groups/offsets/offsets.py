"""The committed offsets of all groups in one shard."""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.topics_view import TopicsView


class GroupOffsets:
    def __init__(self, groups: GroupTable, timers: Timers, topics: TopicsView, config: GroupConfig) -> None:
        self._groups = groups
        self._timers = timers
        self._topics = topics
        self._config = config

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:
        """Change the state by an offset commit, or by its tombstone."""

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        """Keep a commit that counts if its transaction does."""

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """End what a producer left pending."""

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:  # noqa: ARG002 - no offsets yet
        """Removes all offsets of a group, pending ones too: the group is being deleted."""
        return []

    def on_loaded(self, now_ms: int) -> Decision[None]:  # noqa: ARG002 - no timers yet
        return Decision((), None)
