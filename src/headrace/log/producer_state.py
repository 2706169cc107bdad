"""What a partition remembers of each idempotent producer: its epoch and its last five batches.

`check` decides about a batch that a client sent, and changes nothing; `apply` takes over a batch that is in
the log, whoever wrote it. The state at an offset is a function of the log before it, so a snapshot plus the
batches after it give it back.

A producer that is not known may begin with any sequence: its state may have expired. A new epoch of a known
producer begins with sequence 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headrace.core.errors import InvalidProducerEpoch, OutOfOrderSequence
from headrace.log.producer_snapshot import SnapshotEntry
from headrace.protocol.batch import TRANSACTIONAL_FLAG, BatchHeader

BATCHES_REMEMBERED: Final = 5
NO_SEQUENCE: Final = -1
_SEQUENCES: Final = 0x7FFFFFFF


class RememberedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker that ended it."""
    aborted: bool


class ProducerEntry:
    """One producer. Invariant: `batches` are in log order, all of `epoch`, at most BATCHES_REMEMBERED."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "txn_first_offset")

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = -1
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.txn_first_offset = -1
        self.batches: list[RememberedBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, header: BatchHeader) -> RememberedBatch | None:
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for known in self.batches:
            if known.first_sequence == first and known.last_sequence == last:
                return known
        return None

    def as_snapshot(self) -> SnapshotEntry:
        last = self.batches[-1] if self.batches else RememberedBatch(-1, NO_SEQUENCE, -1, 0, -1)
        return SnapshotEntry(
            self.producer_id,
            self.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.txn_first_offset,
        )


class ProducerStates:
    """All producers of one partition, as of `end_offset`."""

    __slots__ = ("_producers", "_transactions", "end_offset")

    def __init__(self) -> None:
        self._producers: dict[int, ProducerEntry] = {}
        self._transactions: dict[int, int] = {}
        """Open transactions: first offset to producer id, in ascending order of offsets."""
        self.end_offset = 0
        """The state includes every batch before it."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    def check(self, header: BatchHeader) -> RememberedBatch | None:
        """Whether a client's batch may be appended; the remembered batch if it is there already."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            return None
        epoch, first = header.producer_epoch, header.base_sequence
        if epoch == entry.epoch:
            last = entry.last_sequence
            if first == (last + 1 if last != _SEQUENCES else 0):
                return None
            known = entry.duplicate_of(header)
            if known is not None:
                return known
            raise OutOfOrderSequence(
                f"producer {header.producer_id} epoch {epoch} sent sequence {first} after {last}"
            )
        if epoch < entry.epoch:
            raise InvalidProducerEpoch(
                f"producer {header.producer_id} has epoch {entry.epoch}, the batch was sent with {epoch}"
            )
        if first != 0 and entry.epoch >= 0:
            raise OutOfOrderSequence(
                f"producer {header.producer_id} began its epoch {epoch} with sequence {first} instead of 0"
            )
        return None

    def apply(self, header: BatchHeader, base_offset: int) -> None:
        """Take over a data batch of a producer that is now in the log at `base_offset`."""
        producer_id, epoch, delta = header[9], header[10], header[6]
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id)
        if epoch != entry.epoch:
            entry.epoch = epoch
            entry.batches = []
        last_offset = base_offset + delta
        batches = entry.batches
        batches.append(
            RememberedBatch(header[11], (header[11] + delta) & _SEQUENCES, last_offset, delta, header[8])
        )
        if len(batches) > BATCHES_REMEMBERED:
            del batches[0]
        entry.last_timestamp = header[8]
        if header[5] & TRANSACTIONAL_FLAG:
            if entry.txn_first_offset < 0:
                entry.txn_first_offset = base_offset
                self._transactions[base_offset] = producer_id
        elif entry.txn_first_offset >= 0:
            self._transactions.pop(entry.txn_first_offset, None)
            entry.txn_first_offset = -1
        self.end_offset = last_offset + 1

    def apply_marker(
        self, header: BatchHeader, base_offset: int, *, coordinator_epoch: int, commit: bool
    ) -> CompletedTransaction | None:
        """Take over the control batch that ends a transaction; the transaction, if one was open."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            entry = self._producers[header.producer_id] = ProducerEntry(header.producer_id)
        if header.producer_epoch != entry.epoch:
            entry.epoch = header.producer_epoch
            entry.batches = []
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        first = entry.txn_first_offset
        entry.txn_first_offset = -1
        self.end_offset = base_offset + header.last_offset_delta + 1
        if first < 0:
            return None
        self._transactions.pop(first, None)
        return CompletedTransaction(header.producer_id, first, self.end_offset - 1, not commit)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._transactions), None)

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been silent for long; never one with an open transaction."""
        gone = [
            entry.producer_id
            for entry in self._producers.values()
            if entry.txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self._producers[producer_id]
        return len(gone)

    def snapshot(self) -> list[SnapshotEntry]:
        return [entry.as_snapshot() for entry in self._producers.values()]

    def restore(self, entries: Iterable[SnapshotEntry], end_offset: int) -> None:
        self.clear(end_offset)
        for found in entries:
            entry = self._producers[found.producer_id] = ProducerEntry(found.producer_id)
            entry.epoch = found.epoch
            entry.coordinator_epoch = found.coordinator_epoch
            entry.last_timestamp = found.timestamp
            entry.txn_first_offset = found.txn_first_offset
            if found.last_sequence != NO_SEQUENCE:
                first = (found.last_sequence - found.offset_delta) & _SEQUENCES
                entry.batches.append(
                    RememberedBatch(
                        first, found.last_sequence, found.last_offset, found.offset_delta, found.timestamp
                    )
                )
        opened = ((e.txn_first_offset, e.producer_id) for e in self if e.txn_first_offset >= 0)
        self._transactions = dict(sorted(opened))

    def clear(self, end_offset: int) -> None:
        self._producers.clear()
        self._transactions.clear()
        self.end_offset = end_offset
