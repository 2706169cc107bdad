"""One replica as a copy of its leader's: what it asks for, and how far it follows what it is given.

`Following` extends and cuts the log. Here the log start and the high watermark follow the leader's, and those
who read this replica are told.
"""

from __future__ import annotations

from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.log.partition_log import PartitionLog
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.following import FetchOutcome, FetchPosition, Following
from headrace.replication.high_watermark import committed_bytes
from headrace.replication.replica import Replica
from headrace.replication.safeguards import Safeguards
from headrace.replication.waiting import tell_append


class CopyingReplica(Replica):
    """A layer of `Partition`, and no object beside it: each answer moves fields of both."""

    __slots__ = ("_following",)

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        metrics: TopicMetrics,
        high_watermark: int | None,
        safeguards: Safeguards,
    ) -> None:
        super().__init__(topic_partition, topic_id, log, metrics, high_watermark, safeguards)
        self._following: Following | None = None
        """There while a leader is followed."""

    def fetch_position(self) -> FetchPosition | None:
        """What to ask the leader for; None if there is no leader to ask, what came last is not synced, or the
        log is being truncated."""
        following = self._following
        if following is None or self.is_offline or self.log.truncation is not None:
            return None
        if self.must_sync_before_ack and self._safeguards.sync_before_ack:
            return None
        return following.position()

    def _on_copied(self, following: Following, data: FetchedPartitionData, outcome: FetchOutcome) -> None:
        log = self.log
        size = len(data.records)
        self.metrics.replication_bytes_in += size
        if outcome == FetchOutcome.APPENDED and self._replica_readers:
            tell_append(self._replica_readers, size)
        following.leader_high_watermark = data.high_watermark
        following.uncommitted_bytes += size
        high_watermark = min(data.high_watermark, log.end_offset)
        # The leader deletes records by its log start; a follower must not keep them longer. The log start
        # moves first: below it may lie records of an epoch that never committed them, and the high watermark
        # would vouch for them.
        start = min(data.log_start_offset, max(high_watermark, self.high_watermark))
        if start > log.log_start_offset:
            log.delete_records_before(start)
        self._follow_high_watermark(following, high_watermark)

    def _begin_behind_store(self) -> FetchOutcome:
        """What the leader has next is in the object store only."""
        if self.history is not None:
            self.history.begin_behind_store()
        return FetchOutcome.BACK_OFF

    @property
    def lag(self) -> int:
        """Records that this replica is behind what is committed, as far as it knows; 0 while it leads."""
        following = self._following
        return 0 if following is None else max(0, following.leader_high_watermark - self.log.end_offset)

    @property
    def corrupt_answers(self) -> int:
        return 0 if self._following is None else self._following.corrupt_answers

    @property
    def cannot_compare(self) -> bool:
        return self._following is not None and self._following.cannot_compare

    @property
    def is_out_of_reach(self) -> bool:
        return self._following is not None and self._following.is_out_of_reach

    def _follow_high_watermark(self, following: Following, offset: int) -> None:
        before = self.high_watermark
        if offset > before or before > self.log.end_offset:
            size = committed_bytes(following.uncommitted_bytes, offset - before, self.log.end_offset - before)
            following.uncommitted_bytes -= size
            self.high_watermark = offset
            self.log.producers.settle(offset)
            self._tell_committed(size or 1)

    def on_extended(self, size: int) -> None:
        """For the log of the metadata, which others append to, and only with what is committed."""
        self.high_watermark = self.log.end_offset
        tell_append(self._replica_readers, size)
        self._tell_committed(size)
