"""One partition that this broker leads: epoch checks, appends, reads up to what is committed, waiters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headrace.core.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeader,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from headrace.core.ids import TopicPartition
from headrace.log.partition_log import AppendResult, LogSlice, PartitionLog
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.batch import BatchHeader
from headrace.replication.high_watermark import HighWatermark

ACKS_ALL = -1


class Waiter(Protocol):
    """Somebody who waits for more committed bytes; told on the event loop, right after the append."""

    def on_committed(self, appended_bytes: int) -> None: ...


class Partition:
    __slots__ = (
        "_high_watermark",
        "_waiters",
        "in_sync_count",
        "is_leader",
        "leader_epoch",
        "log",
        "metrics",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, topic_id: UUID, log: PartitionLog, metrics: TopicMetrics
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.metrics = metrics
        self.is_leader = False
        self.leader_epoch = -1
        self.in_sync_count = 0
        self._high_watermark = HighWatermark(log.log_start_offset)
        self._waiters: set[Waiter] = set()

    # --- leadership ------------------------------------------------------------------------------------

    def lead(self, leader_epoch: int, in_sync: Sequence[int], local_id: int) -> None:
        """Become, or stay, the leader. What followers said in an earlier epoch is forgotten."""
        self.is_leader = True
        self.in_sync_count = len(in_sync)
        if leader_epoch != self.leader_epoch:
            self.leader_epoch = leader_epoch
            self._high_watermark = HighWatermark(self._high_watermark.offset)
        self._high_watermark.set_followers(broker for broker in in_sync if broker != local_id)
        self._high_watermark.on_append(self.log.end_offset)

    def resign(self) -> None:
        self.is_leader = False
        self._wake(0)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """The epoch a client or follower believes in, -1 if it does not say."""
        if not self.is_leader:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(f"leader epoch is {self.leader_epoch}, not {current_leader_epoch}")
        raise UnknownLeaderEpoch(f"leader epoch is only {self.leader_epoch}, not {current_leader_epoch} yet")

    # --- offsets ---------------------------------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        return self._high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided."""
        return self.log.last_stable_offset(self._high_watermark.offset)

    def readable_limit(self, read_committed: bool) -> int:
        return self.last_stable_offset if read_committed else self._high_watermark.offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Where `epoch` ended, or the largest one before it that has records.

        Epochs above the log's latest that have begun hold no record yet: they begin and end at the end.
        """
        if self.log.latest_epoch < epoch <= self.leader_epoch or epoch == self.leader_epoch:
            return epoch, self.log.end_offset
        return self.log.end_offset_for_epoch(epoch)

    # --- data ------------------------------------------------------------------------------------------

    def append(
        self, batch: bytearray | memoryview, header: BatchHeader, *, acks: int, now_ms: int
    ) -> AppendResult:
        if not self.is_leader:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        if acks == ACKS_ALL and self.in_sync_count < self.log.config.min_insync_replicas:
            raise NotEnoughReplicas(
                f"{self.topic_partition} has {self.in_sync_count} in-sync replicas,"
                f" min.insync.replicas asks for {self.log.config.min_insync_replicas}"
            )
        log = self.log
        result = log.append_as_leader(batch, header, leader_epoch=self.leader_epoch, now_ms=now_ms)
        if self._high_watermark.on_append(log.end_offset) and self._waiters:
            self._wake(len(batch))
        return result

    def read(
        self, offset: int, max_bytes: int, *, read_committed: bool = False, min_one: bool = True
    ) -> LogSlice:
        limit = self.readable_limit(read_committed)
        return self.log.read(offset, max_bytes, limit=limit, min_one=min_one)

    def delete_records_before(self, offset: int) -> int:
        """Raise the log start; -1 means up to the high watermark. Returns the new low watermark."""
        target = self._high_watermark.offset if offset == -1 else offset
        if not 0 <= target <= self._high_watermark.offset:
            raise OffsetOutOfRange(
                f"offset {target} is not between 0 and the high watermark {self._high_watermark.offset}"
            )
        return self.log.delete_records_before(target)

    @property
    def must_sync_before_ack(self) -> bool:
        """flush.messages records or more are not on disk yet: their acknowledgement waits for the sync."""
        return self.log.unflushed_messages >= self.log.config.flush_messages

    # --- waiting ---------------------------------------------------------------------------------------

    def wait(self, waiter: Waiter) -> None:
        self._waiters.add(waiter)

    def stop_waiting(self, waiter: Waiter) -> None:
        self._waiters.discard(waiter)

    def _wake(self, appended_bytes: int) -> None:
        for waiter in tuple(self._waiters):
            waiter.on_committed(appended_bytes)
