"""The transactions that the cleaner meets on its way through a log: whose records go, whose marker may.

Records of aborted transactions go at once. A marker stays until nothing of its transaction is left, empty
batches included, and then for delete.retention.ms more, as a tombstone does. An entry of the transaction
index goes with the last record of its transaction.

The cleaner begins each pass at the log's start. So whoever was not met before a marker is not there any more.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.core.errors import ClientError
from headrace.core.ports import Buffer
from headrace.log.transaction_index import AbortedTransaction
from headrace.protocol.batch import BatchHeader
from headrace.protocol.control_records import ControlType, control_type
from headrace.protocol.records import decode_records


class MetTransactions:
    __slots__ = ("_aborted", "_ahead", "_committed", "kept_entries")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._ahead = sorted(aborted, key=_first_offset, reverse=True)
        """Aborted transactions that begin further on, the nearest last."""
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        """By producer: the aborted transaction that is open here, and whether a batch of it was met."""
        self._committed: dict[int, None] = {}
        """Producers of which a batch of a committed transaction was met since their last marker."""
        self.kept_entries: list[AbortedTransaction] = []
        """For the index of the segment that is being written."""

    def _advance(self, header: BatchHeader) -> None:
        """Take up those that have begun by now. One that has ended before this batch concerns nobody."""
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            begun = self._ahead.pop()
            if begun.last_offset >= header.base_offset:
                self._aborted[begun.producer_id] = begun, False

    def meet_data(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to a transaction that was aborted."""
        self._advance(header)
        if not header.is_transactional:
            return False
        open_here = self._aborted.get(header.producer_id)
        if open_here is None or open_here[0].last_offset < header.base_offset:
            self._committed[header.producer_id] = None
            return False
        self._aborted[header.producer_id] = open_here[0], True
        return True

    def meet_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether nothing is left of the transaction that this control batch ended."""
        self._advance(header)
        try:
            record = next(decode_records(batch), None)
            kind = None if record is None else control_type(record)
        except ClientError:
            return False  # a marker that cannot be read is kept as it is
        if kind is None:
            return True  # emptied by an earlier pass
        if kind == ControlType.ABORT:
            ended = self._aborted.pop(header.producer_id, None)
            if ended is not None and ended[1]:
                self.kept_entries.append(ended[0])
                return False
            return True
        if kind == ControlType.COMMIT:
            was_met = header.producer_id in self._committed
            self._committed.pop(header.producer_id, None)
            return not was_met
        return False

    def take_entries(self) -> list[AbortedTransaction]:
        """What was kept since the last call."""
        kept, self.kept_entries = self.kept_entries, []
        return kept


def _first_offset(aborted: AbortedTransaction) -> int:
    return aborted.first_offset
