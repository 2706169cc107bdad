"""One replica as those see it who read it: how far, in which epoch, and who is told when it moves.

Who leads and who follows is the business of `Partition`, which is built on this.
"""

from __future__ import annotations

from enum import IntEnum
from uuid import UUID

from headrace.core.errors import FencedLeaderEpoch, NotLeader, OffsetOutOfRange, UnknownLeaderEpoch
from headrace.core.ids import TopicPartition
from headrace.log.log_reads import LogSlice
from headrace.log.partition_log import PartitionLog
from headrace.metrics.registry import TopicMetrics
from headrace.replication.assignment import NO_LEADER
from headrace.replication.high_watermark import committed_bytes
from headrace.replication.history import History
from headrace.replication.safeguards import Safeguards
from headrace.replication.waiting import Watcher, tell_change, tell_commit


class Role(IntEnum):
    IDLE = 0
    """No leader is known, this broker is no replica of it, or its log is offline."""
    LEADER = 1
    FOLLOWER = 2


class Replica:
    """Invariant: the high watermark is between the log's start and its end, and moves back only with a
    truncation."""

    __slots__ = (
        "_readers",
        "_replica_readers",
        "_safeguards",
        "_stable_readers",
        "_told_stable",
        "_unstable_bytes",
        "high_watermark",
        "history",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "metrics",
        "partition_epoch",
        "replicas",
        "role",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        metrics: TopicMetrics,
        high_watermark: int | None,
        safeguards: Safeguards,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.history: History | None = None
        """Of a topic with tiered storage, where this broker has a store. Its own log is then only a part."""
        self.metrics = metrics
        self.role = Role.IDLE
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        self.high_watermark = log.log_start_offset
        if high_watermark is not None:
            doubtful = log.doubtful if safeguards.doubtful_compared else None
            end = log.end_offset if doubtful is None else doubtful.base_offset
            self.high_watermark = max(self.high_watermark, min(high_watermark, end))
        log.producers.settle(self.high_watermark)
        self._safeguards = safeguards
        self._readers: dict[Watcher, None] = {}
        self._replica_readers: dict[Watcher, None] = {}
        self._stable_readers: dict[Watcher, None] = {}
        """Those who see only what is decided. They are woken by the last stable offset."""
        self._told_stable = 0
        """The last stable offset when they were last told; what it is while there are none means nothing."""
        self._unstable_bytes = 0
        """About how many bytes are committed and not decided, for those who wait for a number of bytes."""

    @property
    def is_offline(self) -> bool:
        return self.log.closed or self.log.directory.failure is not None

    @property
    def in_sync_count(self) -> int:
        return len(self.isr)

    # --- who may ask -------------------------------------------------------------------------------------

    def check_epoch(self, current_leader_epoch: int) -> None:
        """For what only a leader answers. -1 if the peer does not say which epoch it believes in."""
        if not self.is_leader:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        self._compare_epochs(current_leader_epoch)

    def check_read(self, current_leader_epoch: int) -> None:
        """For a consumer that may read from a follower (KIP-392)."""
        if self.role == Role.IDLE:
            raise NotLeader(f"this broker neither leads nor follows {self.topic_partition}")
        self._compare_epochs(current_leader_epoch)

    def check_any(self, current_leader_epoch: int) -> None:
        """For those who compare replicas, also where nobody leads: an epoch must be right if it is said."""
        self._compare_epochs(current_leader_epoch)

    def check_replica(self, current_leader_epoch: int) -> None:
        """For a follower: it must be in the leader's own epoch, and say so (rule 2)."""
        if not self.is_leader:
            raise NotLeader(f"this broker does not lead {self.topic_partition}")
        if not self._safeguards.fenced_exchange:
            return
        if current_leader_epoch < 0:
            raise FencedLeaderEpoch("a replica has to say which leader epoch it follows")
        self._compare_epochs(current_leader_epoch)

    def _compare_epochs(self, current_leader_epoch: int) -> None:
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch(f"leader epoch is {self.leader_epoch}, not {current_leader_epoch}")
        raise UnknownLeaderEpoch(f"leader epoch is only {self.leader_epoch}, not {current_leader_epoch} yet")

    # --- offsets -----------------------------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int | None:
        """Where what can be read begins, here or in an object store; None if the store was not asked yet."""
        return self.log.log_start_offset if self.history is None else self.history.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided."""
        return self.log.last_stable_offset(self.high_watermark)

    def readable_limit(self, read_committed: bool) -> int:
        return self.last_stable_offset if read_committed else self.high_watermark

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that has records here, and where it ended (rule 1).

        The leader's own epoch ends at the end of the log, with records or without. An epoch between the
        log's latest and the leader's own has no record here, though it may have some elsewhere: those must
        be cut off, so the log's latest is what is answered.
        """
        log = self.log
        if epoch == self.leader_epoch:
            return epoch, log.end_offset
        if log.latest_epoch < epoch < self.leader_epoch:
            return (log.latest_epoch if log.latest_epoch >= 0 else epoch), log.end_offset
        if self.history is not None and log.epochs.entries and epoch < log.epochs.entries[0][0]:
            ended = self.history.end_of_epoch(epoch)  # before this log begins
            if ended is not None:
                return ended
        return log.end_offset_for_epoch(epoch)

    def diverging(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """Epoch and end offset where the peer's log and this one part ways; None if they agree (rule 1)."""
        epoch, end_offset = self.end_offset_for_epoch(last_fetched_epoch)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    @property
    def must_sync_before_ack(self) -> bool:
        """flush.messages records or more are not on disk yet: they count for nothing before they are."""
        log = self.log
        return log.end_offset - log.synced_offset >= log.config.flush_messages

    def delete_records_before(self, offset: int) -> int:
        """Raise the log start; -1 means up to the high watermark. Returns the new log start."""
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise OffsetOutOfRange(
                f"offset {target} is not between 0 and the high watermark {self.high_watermark}"
            )
        start = self.log.delete_records_before(target)
        if self.history is not None:
            self.history.request_log_start(target)
            start = target
        self._tell_changed()
        return start

    # --- reading -----------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, read_committed: bool = False, min_one: bool = True
    ) -> LogSlice:
        limit = self.readable_limit(read_committed)
        return self.log.read(offset, max_bytes, limit=limit, min_one=min_one)

    def read_as_replica(self, offset: int, max_bytes: int, *, min_one: bool = True) -> LogSlice:
        """Up to the end: a follower copies what is not committed yet."""
        return self.log.read(offset, max_bytes, limit=self.log.end_offset, min_one=min_one)

    def aborted_in(self, offset: int, records: LogSlice, *, wait: bool = True) -> list[tuple[int, int]]:
        """Producer and first offset of the transactions whose records a reader of `records` passes over."""
        return [(found[0], found[1]) for found in self.log.aborted_in(offset, records, wait=wait)]

    def watch(self, watcher: Watcher, *, as_replica: bool = False, read_committed: bool = False) -> None:
        if as_replica:
            self._replica_readers[watcher] = None
        elif read_committed:
            if not self._stable_readers:
                self._told_stable = self.last_stable_offset
                self._unstable_bytes = 0
                if self._told_stable < self.high_watermark:
                    self._unstable_bytes = self.log.size_from(self._told_stable)
            self._stable_readers[watcher] = None
        else:
            self._readers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._readers.pop(watcher, None)
        self._stable_readers.pop(watcher, None)
        self._replica_readers.pop(watcher, None)

    def _tell_committed(self, size: int) -> None:
        if self._readers:
            tell_commit(self._readers, size)
        if self._stable_readers:
            self._tell_stable(size)
        if self._replica_readers:
            tell_commit(self._replica_readers, size)

    def _tell_stable(self, size: int) -> None:
        """The high watermark moved, and perhaps the last stable offset with it."""
        before, stable, told = self._told_stable, self.last_stable_offset, 0
        self._unstable_bytes += size
        if stable > before:
            told = committed_bytes(self._unstable_bytes, stable - before, self.high_watermark - before) or 1
            self._unstable_bytes = max(0, self._unstable_bytes - told)
            self._told_stable = stable
        tell_commit(self._stable_readers, told)

    def on_start_raised(self) -> None:
        """Retention has raised the log start. It goes with each peer's next answer, and wakes nobody."""
        tell_commit((*self._readers, *self._stable_readers, *self._replica_readers), 0)

    def _tell_changed(self) -> None:
        tell_change((*self._readers, *self._stable_readers, *self._replica_readers))
