"""The batches before the offset at which a topic is forked: a `tier.forking.Scanner`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crc32c import crc32c

from headrace.broker.coordinators.markers import end_batch
from headrace.log import producer_snapshot
from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD, assign, check
from headrace.tier.forking import OpenTransaction
from headrace.tier.segments import NO_TIMESTAMP, Stored

NO_TRANSACTION: Final = -1


class BatchScanner:
    def __init__(self) -> None:
        self._open: dict[int, OpenTransaction] = {}
        self.begin(0)

    @property
    def stored(self) -> Stored:
        return Stored(self._size, self._crc32c)

    @property
    def open(self) -> Sequence[OpenTransaction]:
        return sorted(self._open.values(), key=lambda each: each.first_offset)

    def restore(self, snapshot: bytes) -> None:
        """The last entry of each producer is the one that counts."""
        self._open.clear()
        for each in producer_snapshot.decode(snapshot):
            self._open.pop(each.producer_id, None)
            if each.txn_first_offset != NO_TRANSACTION:
                self._open[each.producer_id] = OpenTransaction(
                    each.producer_id, each.epoch, each.txn_first_offset
                )

    def begin(self, base_offset: int) -> None:
        self.next_offset = base_offset
        self.max_timestamp = NO_TIMESTAMP
        self._size = self._crc32c = 0

    def feed(self, data: memoryview, until: int) -> tuple[int, bool]:
        """CorruptBatch if one is not what was written."""
        at = 0
        while len(data) - at >= HEADER_SIZE:
            size = int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big") + LOG_OVERHEAD
            if at + size > len(data):
                break
            header = check(data, at)
            if header.last_offset >= until:
                return at, True
            if header.is_control:
                self._open.pop(header.producer_id, None)
            elif header.is_transactional and header.producer_id not in self._open:
                self._open[header.producer_id] = OpenTransaction(
                    header.producer_id, header.producer_epoch, header.base_offset
                )
            self._crc32c = crc32c(data[at : at + size], self._crc32c)
            self._size += size
            self.next_offset = header.last_offset + 1
            self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
            at += size
        return at, False

    def markers(
        self, ends: Sequence[tuple[OpenTransaction, bool]], base_offset: int, leader_epoch: int
    ) -> bytes:
        """They carry the time of the last record that is there: retention counts nothing as younger."""
        found = bytearray()
        for place, (each, is_committed) in enumerate(ends):
            batch = end_batch(
                (each.producer_id, each.producer_epoch),
                coordinator_epoch=0,
                committed=is_committed,
                now_ms=max(self.max_timestamp, 0),
            )
            assign(batch, 0, base_offset + place, leader_epoch)
            found += batch
        return bytes(found)
