"""Whether the transaction of a batch was committed: by the markers that follow it in the log.

The markers are the truth; a transaction index is only made of them. Whoever meets a batch of a transaction
looks ahead, by headers alone, for the next marker of its producer, and remembers the markers on the way.
Compaction keeps a marker for as long as anything of its transaction is there, an empty batch included.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from headrace.arrow.errors import DamagedHistory, HistoryGone
from headrace.arrow.history import History
from headrace.core.errors import CorruptLog, HeadraceError
from headrace.log import segments
from headrace.protocol.batch import BatchHeader, check
from headrace.protocol.control_records import ControlType, control_type
from headrace.protocol.records import decode_records


class Fate(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNDECIDED = "undecided"
    """Nothing is known of its end. What follows is not read: a consumer would wait here."""


class _Marker(NamedTuple):
    offset: int
    producer_id: int
    fate: Fate


_KINDS = {ControlType.ABORT: Fate.ABORTED, ControlType.COMMIT: Fate.COMMITTED}


class Fates:
    """For a reader that comes in order."""

    def __init__(self, history: History, chunk_bytes: int) -> None:
        self._history = history
        self._chunk_bytes = chunk_bytes
        self._known: defaultdict[int, deque[_Marker]] = defaultdict(deque)
        self._walked = -1
        """Everything from the reader's place up to here was looked at."""
        self._walk: Iterator[_Marker] = iter(())

    def of(self, header: BatchHeader) -> Fate:
        known = self._known[header.producer_id]
        while known and known[0].offset < header.base_offset:
            known.popleft()
        if known:
            return known[0].fate
        if self._walked < header.next_offset:
            self._known.clear()
            self._walk = self._markers_from(header.next_offset)
        for marker in self._walk:
            self._known[marker.producer_id].append(marker)
            if marker.producer_id == header.producer_id:
                return marker.fate
        return Fate.UNDECIDED

    def _markers_from(self, offset: int) -> Iterator[_Marker]:
        for header, batch in batches_from(self._history, offset, self._chunk_bytes):
            self._walked = header.next_offset
            marker = _marker_of(header, batch) if header.is_control else None
            if marker is not None:
                yield marker


def batches_from(history: History, offset: int, chunk_bytes: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Unchecked, up to the end of what is committed."""
    while offset < history.end:
        segment = history.open_at(offset)
        try:
            for _, header, batch in segments.batches(
                segment.file,
                segment.position_of(offset),
                segment.size,
                least=segment.base_offset,
                chunk_bytes=chunk_bytes,
            ):
                if header.base_offset >= history.end:
                    return
                if header.next_offset <= offset:
                    continue
                offset = header.next_offset
                yield header, batch
                if offset >= history.end:
                    return
            if segment.next_offset is None:
                return
            offset = max(offset, segment.next_offset)
        except CorruptLog as error:
            raise DamagedHistory(segment.name, offset, str(error)) from None
        finally:
            segment.close()


def last_stable_offset(
    history: History, begin: int, open_there: Mapping[int, int], *, first: int, chunk_bytes: int
) -> int:
    """Where the first transaction begins that is open at the end of `history`; its end if none is.

    `open_there` are producers and beginnings of those that are open at `begin`. A reader that comes from
    `first` meets damage behind that by itself, and after the records before it; for other damage nobody can
    say what is open.
    """
    open_now = dict(open_there)
    offset = begin
    try:
        for header, batch in batches_from(history, begin, chunk_bytes):
            offset = header.base_offset
            if header.is_control and _marker_of(header, batch) is not None:
                open_now.pop(header.producer_id, None)
            elif header.is_transactional and not header.is_control:
                open_now.setdefault(header.producer_id, header.base_offset)
            offset = header.next_offset
    except HistoryGone:
        raise
    except HeadraceError:
        if offset < first:
            raise
        return history.end
    return min(open_now.values(), default=history.end)


def _marker_of(header: BatchHeader, batch: memoryview) -> _Marker | None:
    """None for a marker of another kind, and for one that compaction has emptied: nothing is left of what
    it ended."""
    check(batch)  # a flipped bit could end the transaction of another producer
    record = next(decode_records(batch), None)
    fate = None if record is None else _KINDS.get(ControlType(control_type(record)))
    return None if fate is None else _Marker(header.base_offset, header.producer_id, fate)
