"""What a shard writes: the records of all decisions of one turn of the loop go out as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.broker.storage.flusher import Flusher
from headrace.coordinators.codec import encode
from headrace.coordinators.decision import CoordinatorRecord
from headrace.core.errors import MessageTooLarge, NotLeader
from headrace.core.ports import Clock
from headrace.protocol.batch import HEADER_SIZE, read_header
from headrace.protocol.records import NewRecord, encode_batch
from headrace.replication.partition import ACKS_ALL, Partition

RECORD_OVERHEAD: Final = 24
"""No record takes more than this besides its key and value."""

Producer = tuple[int, int]
"""Id and epoch of the producer whose transaction the records belong to."""


class ShardWriter:
    """Invariant: while it is the only one that appends, the next record gets offset `end`."""

    __slots__ = (
        "_clock",
        "_compression",
        "_flusher",
        "_partition",
        "_pending",
        "_size",
        "end",
        "is_appending",
    )

    def __init__(self, clock: Clock, flusher: Flusher, partition: Partition, compression: int) -> None:
        self._clock = clock
        self._flusher = flusher
        self._partition = partition
        self._compression = compression
        self._pending: list[NewRecord] = []
        self._size = HEADER_SIZE
        self.end = 0
        """One past the last record that was written, or that waits to be."""
        self.is_appending = False

    def begin(self) -> None:
        """Everything that is in the log is known. Write behind it."""
        self._pending.clear()
        self._size = HEADER_SIZE
        self.end = self._partition.log.end_offset

    def encode(self, records: Sequence[CoordinatorRecord], now_ms: int) -> list[NewRecord]:
        """Raises MessageTooLarge if they cannot be one batch."""
        encoded = [encode(record, now_ms) for record in records]
        if self._size_of(encoded) + HEADER_SIZE > self._partition.log.config.max_message_bytes:
            raise MessageTooLarge(
                f"{len(records)} records of {self._partition.topic_partition} are larger together than"
                f" max.message.bytes ({self._partition.log.config.max_message_bytes})"
            )
        return encoded

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    @property
    def written_end(self) -> int:
        return self.end - len(self._pending)

    def fits(self, encoded: Sequence[NewRecord]) -> bool:
        return self._size + self._size_of(encoded) <= self._partition.log.config.max_message_bytes

    def add(self, encoded: Sequence[NewRecord]) -> int:
        """Have them written with the next `flush`; the offset that the first of them will get."""
        first = self.end
        self._pending += encoded
        self._size += self._size_of(encoded)
        self.end = first + len(encoded)
        return first

    @staticmethod
    def _size_of(encoded: Sequence[NewRecord]) -> int:
        size = 0
        for value, key, _, _ in encoded:
            size += RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        return size

    def flush(self) -> None:
        """Append what waits. Raises what the partition raises, and then nothing of it is written."""
        pending = self._pending
        if not pending:
            return
        self._pending, self._size = [], HEADER_SIZE
        if self._partition.log.end_offset != self.end - len(pending):
            raise NotLeader(f"somebody else has written to {self._partition.topic_partition}")
        self._append(encode_batch(pending, compression=self._compression))

    def append_now(self, encoded: Sequence[NewRecord]) -> int:
        """As a batch of its own, at once; the offset of the first."""
        return self.append_sealed(encode_batch(encoded, compression=self._compression), len(encoded))

    def append_transactional(self, encoded: Sequence[NewRecord], producer: Producer) -> int:
        """As a batch of its own, in a producer's transaction; the offset of the first. The log knows whether
        the producer may."""
        assert not self._pending, "what was decided before is written before"
        producer_id, epoch = producer
        batch = encode_batch(
            encoded,
            compression=self._compression,
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional=True,
        )
        return self.append_sealed(batch, len(encoded))

    def append_sealed(self, batch: bytearray, count: int) -> int:
        """One batch as it is, behind everything else."""
        assert not self._pending, "what was decided before is written before"
        first = self.end
        if self._partition.log.end_offset != first:
            raise NotLeader(f"somebody else has written to {self._partition.topic_partition}")
        self._append(batch)
        self.end = first + count
        return first

    def _append(self, batch: bytearray) -> None:
        partition = self._partition
        header = read_header(batch)
        self.is_appending = True
        try:
            partition.append(batch, header, acks=ACKS_ALL, now_ms=self._clock.wall_ms(), from_client=False)
        finally:
            self.is_appending = False
        partition.metrics.messages_in += header.record_count
        partition.metrics.bytes_in += len(batch)
        if partition.must_sync_before_ack:
            self._flusher.flush(partition.log)
