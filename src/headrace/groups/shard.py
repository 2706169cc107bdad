"""All groups whose ids fall into one partition of __consumer_offsets, with their offsets.

Three parts share one table of groups. Which of them replays a record is decided by the class of its key.
"""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.coordinators.shard import Timers
from headrace.core.ports import Random
from headrace.groups.classic.groups import ClassicGroups
from headrace.groups.consumer.groups import ConsumerGroups
from headrace.groups.group_config import GroupConfig
from headrace.groups.group_table import GroupTable
from headrace.groups.offsets.offsets import GroupOffsets
from headrace.groups.topics_view import TopicsView
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey


class GroupShard:
    """Implements coordinators.shard.Shard."""

    __slots__ = ("classic", "consumer", "groups", "offsets")

    def __init__(self, timers: Timers, topics: TopicsView, config: GroupConfig, random: Random) -> None:
        self.groups = GroupTable()
        self.classic = ClassicGroups(self.groups, timers, config, random)
        self.offsets = GroupOffsets(self.groups, self.classic, timers, topics, config)
        self.consumer = ConsumerGroups(self.groups, timers, topics, config, random)

    def replay(self, record: CoordinatorRecord, offset: int, timestamp_ms: int) -> None:
        kind = record.key.API_KEY
        if kind <= OffsetCommitKey.API_KEY:
            self.offsets.replay(record, offset, timestamp_ms)
        elif kind == GroupMetadataKey.API_KEY:
            self.classic.replay(record)
        else:
            self.consumer.replay(record, offset, timestamp_ms)

    def replay_transactional(
        self, record: CoordinatorRecord, offset: int, timestamp_ms: int, producer_id: int
    ) -> None:
        """Only offsets are written by transactions."""
        self.offsets.replay_transactional(record, offset, timestamp_ms, producer_id)

    def replay_end(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        self.offsets.replay_end(producer_id, producer_epoch, committed=committed)

    def on_loaded(self, now_ms: int) -> Decision[None]:
        """No answer of anybody is parked yet, so the parts' decisions are one."""
        records: list[CoordinatorRecord] = []
        for part in (self.classic, self.consumer, self.offsets):
            records.extend(part.on_loaded(now_ms).records)
        return Decision(records, None)
