"""What a partition remembers of one producer: epoch, last five batches, where its transaction began."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.log.producer_snapshot import SnapshotEntry
from headrace.protocol.batch import BatchHeader

BATCHES_REMEMBERED: Final = 5
NO_SEQUENCE: Final = -1


class RememberedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerEntry:
    """One producer. Invariant: `batches` are in log order, all of `epoch`, at most BATCHES_REMEMBERED."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "silent_since_ms",
        "txn_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.silent_since_ms = -1
        """By a clock that never jumps, as `expire` found it; -1 if it has written since then."""
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

    def as_snapshot(self) -> list[SnapshotEntry]:
        """One entry for each remembered batch, the last one last.

        Kafka writes only the last. Whoever reads an id twice takes the later entry, so its tools and brokers
        understand ours; and a producer that had five batches under way when its leader was restarted can
        send all of them again without any of them being written twice.
        """
        batches = self.batches or [RememberedBatch(-1, NO_SEQUENCE, -1, 0)]
        entries = [
            SnapshotEntry(
                self.producer_id,
                self.epoch,
                batch.last_sequence,
                batch.last_offset,
                batch.offset_delta,
                self.last_timestamp,
                self.coordinator_epoch,
                -1,
            )
            for batch in batches
        ]
        entries[-1] = entries[-1]._replace(txn_first_offset=self.txn_first_offset)
        return entries
