"""What a partition remembers of its producers (producer_entry.py), and what it may append of theirs.

`check`, `check_own` and `check_marker` decide about what is to be appended, and change nothing; `apply` and
`apply_marker` take over what is in the log, whoever wrote it. The state at an offset is a function of the log
before it, so a snapshot plus the batches after it give it back.

A producer that is not known may begin with any sequence: its state may have expired. A new epoch of a known
producer begins with sequence 0. The first batch of a transaction needs a verification
(producer_verification.py), which lives in memory only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from headrace.core.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
    TooManyProducers,
    TransactionCoordinatorFenced,
)
from headrace.log.producer_entry import BATCHES_REMEMBERED, NO_SEQUENCE, ProducerEntry, RememberedBatch
from headrace.log.producer_snapshot import SnapshotEntry
from headrace.log.producer_verification import Verification
from headrace.protocol.batch import TRANSACTIONAL_FLAG, BatchHeader

QUIET_MS: Final = 60 * 60 * 1000
"""Longer than any client goes on sending a batch again."""
_SEQUENCES: Final = 0x7FFFFFFF
_LAST_EPOCH: Final = 0x7FFF
EPOCH_RAISED_AT_END: Final = 2
"""From this transaction.version on a marker carries a higher epoch than the records that it ends."""


class CompletedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    """Of the marker that ended it."""
    aborted: bool


class ProducerStates:
    """All producers of one partition, as of `end_offset`."""

    __slots__ = ("_admits", "_ended", "_producers", "_transactions", "_verifications", "end_offset")

    def __init__(self, admits: Callable[[], bool] | None = None) -> None:
        """`admits` is asked whether there is room for a client's producer that is not known yet."""
        self._admits = admits
        self._producers: dict[int, ProducerEntry] = {}
        self._transactions: dict[int, int] = {}
        """Open transactions: first offset to producer id, in ascending order of offsets."""
        self._ended: deque[tuple[int, int]] = deque()
        """(offset of the marker, first offset) of transactions whose end may not be committed yet, in the
        order of their markers. `settle` drops those that are."""
        self._verifications: dict[int, Verification] = {}
        """By producer: questions to coordinators, and their answers until the first append."""
        self.end_offset = 0
        """The state includes every batch before it."""

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    # --- may it be appended? ---

    def check(self, header: BatchHeader) -> RememberedBatch | None:
        """Whether a client's batch may be appended; the remembered batch if it is there already."""
        entry = self._producers.get(header[9])
        if header[5] & TRANSACTIONAL_FLAG:
            known = entry.duplicate_of(header) if entry is not None else None
            if known is not None:
                return known
            self._require_verified(header, entry)
        if entry is None:
            if self._verifications:
                self._check_first_of_many(header, None)
            if self._admits is not None and not self._admits():
                raise TooManyProducers(
                    f"there is no room for producer {header[9]}; others are forgotten when they are silent"
                )
            return None
        epoch, first = header[10], header[11]
        if self._verifications:
            self._check_first_of_many(header, entry)
        if epoch == entry.epoch:
            last = entry.last_sequence
            if first != (last + 1 if last != _SEQUENCES else 0):
                known = entry.duplicate_of(header)
                if known is not None:
                    return known
                raise OutOfOrderSequence(
                    f"producer {entry.producer_id} epoch {epoch} sent sequence {first} after {last}"
                )
        elif epoch < entry.epoch:
            raise _fenced(entry, epoch)
        elif first != 0 and entry.epoch >= 0:
            raise OutOfOrderSequence(
                f"producer {entry.producer_id} began its epoch {epoch} with sequence {first} instead of 0"
            )
        if entry.txn_first_offset >= 0 and not header[5] & TRANSACTIONAL_FLAG:
            raise InvalidTransactionState(
                f"producer {entry.producer_id} has a transaction open here and sent a batch outside of it"
            )
        return None

    def check_own(self, header: BatchHeader) -> None:
        """The same for a batch that a coordinator on this broker writes for a producer's transaction: it has
        no sequence."""
        entry = self._producers.get(header[9])
        self._require_verified(header, entry)
        if entry is not None and header[10] < entry.epoch:
            raise _fenced(entry, header[10])

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Whether a marker may be appended.

        Where the epoch is raised at every end, a marker of the epoch that is known belongs to an earlier
        transaction; unless none is open: then it is the same marker once more, which does no harm. Nor can
        the last epoch of all be raised.
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            return
        if epoch < entry.epoch:
            raise _fenced(entry, epoch)
        if (
            epoch == entry.epoch
            and transaction_version >= EPOCH_RAISED_AT_END
            and entry.txn_first_offset >= 0
            and epoch != _LAST_EPOCH
        ):
            raise InvalidProducerEpoch(
                f"the transaction of producer {producer_id} has epoch {epoch}, and so has its marker"
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"a coordinator of epoch {entry.coordinator_epoch} has decided about producer {producer_id},"
                f" the marker comes from one of epoch {coordinator_epoch}"
            )

    def _require_verified(self, header: BatchHeader, entry: ProducerEntry | None) -> None:
        """A transaction is open here, or is known to the coordinator to have this partition."""
        epoch = header[10]
        if entry is not None:
            if entry.txn_first_offset >= 0 and entry.epoch == epoch:
                return
            if epoch < entry.epoch:
                raise _fenced(entry, epoch)
        verification = self._verifications.get(header[9])
        if verification is None or not verification.is_verified or verification.epoch != epoch:
            raise InvalidTransactionState(
                f"this partition is not known to be in a transaction of producer {header[9]} epoch {epoch}"
            )

    def _check_first_of_many(self, header: BatchHeader, entry: ProducerEntry | None) -> None:
        """Batches that were sent together with the first of a transaction keep their order."""
        verification = self._verifications.get(header[9])
        if verification is None:
            return
        first = header[11]
        is_new = entry is None or not entry.batches
        if first > verification.lowest_sequence or (first and is_new and verification.raises_epochs):
            raise OutOfOrderSequence(
                f"producer {header[9]} sent sequence {first} before the first batch of its transaction"
            )

    # --- verification of a transaction's first batch ---

    def needs_verification(self, producer_id: int, epoch: int) -> bool:
        """Whether a transactional batch has to wait until the coordinator was asked."""
        entry = self._producers.get(producer_id)
        if entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch:
            return False
        verification = self._verifications.get(producer_id)
        return verification is None or not verification.is_verified or verification.epoch != epoch

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, *, raises_epochs: bool, now_ms: int
    ) -> Verification | None:
        """Note that the coordinator is asked; None if it need not be, for the transaction is open here."""
        entry = self._producers.get(producer_id)
        if entry is not None:
            if epoch < entry.epoch:
                raise _fenced(entry, epoch)
            if entry.txn_first_offset >= 0 and entry.epoch == epoch:
                return None
        found = self._verifications.get(producer_id)
        if found is not None and epoch < found.epoch:
            if not found.is_verified:
                # Nobody has said yet that the newer epoch is real. The coordinator may say what this one is,
                # but beside the other note its answer proves nothing.
                return Verification(epoch, sequence, raises_epochs, now_ms)
            raise InvalidProducerEpoch(
                f"producer {producer_id} has epoch {found.epoch}, the batch was sent with {epoch}"
            )
        if found is None or epoch > found.epoch:
            found = self._verifications[producer_id] = Verification(epoch, sequence, raises_epochs, now_ms)
        elif sequence < found.lowest_sequence:
            found.lowest_sequence = sequence
        return found

    def end_verification(self, producer_id: int, verification: Verification) -> bool:
        """The coordinator knows of the partition. False if the answer comes too late: a marker, or a newer
        epoch, has come in between."""
        if self._verifications.get(producer_id) is not verification:
            return False
        verification.is_verified = True
        return True

    def refute_verification(self, producer_id: int, verification: Verification) -> None:
        """The coordinator knows no such producer or epoch. Its note must not stand in the way of those that
        the coordinator knows."""
        if self._verifications.get(producer_id) is verification and not verification.is_verified:
            del self._verifications[producer_id]

    def forget_verifications(self) -> None:
        """Another leader may have written markers meanwhile."""
        self._verifications.clear()

    # --- what is in the log ---

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
        first = header[11]
        last = (first + delta) & _SEQUENCES if first >= 0 else NO_SEQUENCE
        batches.append(RememberedBatch(first, last, last_offset, delta))
        if len(batches) > BATCHES_REMEMBERED:
            del batches[0]
        entry.last_timestamp = header[8]
        entry.silent_since_ms = -1
        if header[5] & TRANSACTIONAL_FLAG:
            if entry.txn_first_offset < 0:
                entry.txn_first_offset = base_offset
                self._transactions[base_offset] = producer_id
            if self._verifications:
                self._verifications.pop(producer_id, None)
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
        entry.silent_since_ms = -1
        first = entry.txn_first_offset
        entry.txn_first_offset = -1
        self._verifications.pop(header.producer_id, None)
        self.end_offset = base_offset + header.last_offset_delta + 1
        if first < 0:
            return None
        self._transactions.pop(first, None)
        self._ended.append((base_offset, first))
        return CompletedTransaction(header.producer_id, first, base_offset, not commit)

    # --- what is decided ---

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._transactions), None)

    @property
    def oldest_undecided(self) -> ProducerEntry | None:
        """Whose transaction has been open the longest here."""
        producer_id = next(iter(self._transactions.values()), None)
        return None if producer_id is None else self._producers.get(producer_id)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the oldest transaction begins that is open, or whose end is not committed."""
        first = next(iter(self._transactions), None)
        if self._ended:
            self.settle(high_watermark)
            for _, begins in self._ended:
                if first is None or begins < first:
                    first = begins
        return first

    def settle(self, high_watermark: int) -> None:
        """Markers below the high watermark are final."""
        ended = self._ended
        while ended and ended[0][0] < high_watermark:
            ended.popleft()

    def forget_silent(self, monotonic_ms: int, quiet_ms: int) -> int:
        """Make room, sooner than `expire`: those who have written nothing for so long by a clock that never
        jumps, from the first call on that found them so. Never one with an open transaction."""
        gone = []
        for entry in self._producers.values():
            if entry.silent_since_ms < 0:
                entry.silent_since_ms = monotonic_ms
            elif entry.txn_first_offset < 0 and monotonic_ms - entry.silent_since_ms >= quiet_ms:
                gone.append(entry.producer_id)
        for producer_id in gone:
            del self._producers[producer_id]
        return len(gone)

    def expire(self, now_ms: int, monotonic_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been silent for long; never one with an open transaction.

        Long by the times of their records, as Kafka counts, and a while by a clock that never jumps, which is
        counted from one call to the next. By the first alone, a wall clock that is set forward by a day, or
        records of last year, would make a producer unknown whose batches are under way, and one of them that
        is sent again would be written twice.
        """
        quiet_ms = min(expiration_ms, QUIET_MS)
        gone = []
        for entry in self._producers.values():
            if entry.silent_since_ms < 0:
                entry.silent_since_ms = monotonic_ms
            if (
                entry.txn_first_offset < 0
                and now_ms - entry.last_timestamp >= expiration_ms
                and monotonic_ms - entry.silent_since_ms >= quiet_ms
            ):
                gone.append(entry.producer_id)
        for producer_id in gone:
            del self._producers[producer_id]
        for producer_id, asked in list(self._verifications.items()):
            if now_ms - asked.began_ms >= expiration_ms:
                del self._verifications[producer_id]
        return len(gone)

    def forget_before(self, offset: int) -> None:
        """Forget what was written before `offset`, where another cluster's producers end and this one's
        begin.

        Both count their ids from 0. A new producer here must not be taken for one of there that has its id:
        its first batch could pass for a duplicate. One that has no batch is forgotten too, as nobody can say
        whose it is; its transactions are fenced by their coordinator. Open ones stay.
        """
        for entry in list(self._producers.values()):
            entry.batches = [batch for batch in entry.batches if batch.last_offset >= offset]
            if not entry.batches and entry.txn_first_offset < 0:
                del self._producers[entry.producer_id]

    def snapshot(self) -> list[SnapshotEntry]:
        return [each for entry in self._producers.values() for each in entry.as_snapshot()]

    def restore(self, entries: Iterable[SnapshotEntry], end_offset: int) -> None:
        self.clear(end_offset)
        for found in entries:
            entry = self._producers.get(found.producer_id)
            if entry is None or entry.epoch != found.epoch:
                entry = self._producers[found.producer_id] = ProducerEntry(found.producer_id)
            entry.epoch = found.epoch
            entry.coordinator_epoch = found.coordinator_epoch
            entry.last_timestamp = found.timestamp
            entry.txn_first_offset = found.txn_first_offset
            if found.last_offset >= 0:
                first = NO_SEQUENCE
                if found.last_sequence != NO_SEQUENCE:
                    first = (found.last_sequence - found.offset_delta) & _SEQUENCES
                entry.batches.append(
                    RememberedBatch(first, found.last_sequence, found.last_offset, found.offset_delta)
                )
                del entry.batches[:-BATCHES_REMEMBERED]
        opened = ((e.txn_first_offset, e.producer_id) for e in self if e.txn_first_offset >= 0)
        self._transactions = dict(sorted(opened))

    def clear(self, end_offset: int) -> None:
        self._producers.clear()
        self._transactions.clear()
        self._ended.clear()
        self._verifications.clear()
        self.end_offset = end_offset


def _fenced(entry: ProducerEntry, epoch: int) -> InvalidProducerEpoch:
    return InvalidProducerEpoch(
        f"producer {entry.producer_id} has epoch {entry.epoch}, this was sent with {epoch}"
    )
