"""What one producer has had acknowledged and not yet told. No clock, no thread, no client: events come out.

Handing a record over and hearing of it are cheap on purpose: the application's threads pay for them. Records
that are handed over between two events share one callback. Each that is on its way keeps a reference to it;
when the last one is settled, the callback ceases to exist. So the ledger knows since when something is
outstanding without counting anything.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from headrace.audit.checksum import MASK, record_hash
from headrace.audit.event import Count, Event
from headrace.audit.settings import AuditSettings
from headrace.audit.tally import Cell, Tally, window_of

#: How many acknowledged records may wait before they are counted: their bytes are held until then.
_CROWD: Final = 256

#: How many cells one event tells of. With the longest names of topics that is less than the million bytes
#: that brokers and clients take for a record.
_CELLS_AT_MOST: Final = 2_000

Fields = tuple[str, int, int, bytes | None, bytes | None]
"""Topic, partition, timestamp in ms, key, value."""

Unpack = Callable[[Iterable[Any]], Iterable[Fields]]
"""Reads what delivery reports of a client say. Of many at a time: a call for each would cost as much as its
hash."""

Settled = Callable[[object, Any], None]
"""Called with an error or None, and a delivery report."""


class Ledger:
    """`fields` reads what a client's delivery report says; `failed` the same of one that failed."""

    def __init__(
        self,
        settings: AuditSettings,
        incarnation: str,
        now_ms: int,
        fields: Unpack,
        failed: Unpack | None = None,
    ) -> None:
        self.settings = settings
        self.incarnation = incarnation
        self.started_ms = now_ms
        self.delivered: deque[Any] = deque()
        self.uncertain: deque[Any] = deque()
        self._fields = fields
        self._failed = failed or fields
        self._sequence = 0
        self._complete_until_ms = now_ms
        #: Whether the last event left something to tell: then another should follow at once.
        self.has_more = False
        self._counting = threading.Lock()
        self._counts: dict[Cell, list[int]] = {}
        self._uncertain: dict[Cell, int] = {}
        self._transaction: _Transaction | None = None
        self._outstanding: list[tuple[int, weakref.ref[Settled]]] = []
        self._begin(now_ms)

    def _begin(self, now_ms: int) -> None:
        settled = self._callback()
        self._outstanding.append((now_ms, weakref.ref(settled)))
        #: What every record that is handed over now must call back, as confluent-kafka does it.
        self.settled: Settled = settled

    def _callback(self) -> Settled:
        delivered, count, uncertain = self.delivered, self.count, self.uncertain
        append = delivered.append

        def settled(error: object, message: Any) -> None:
            if error is None:
                append(message)
                if len(delivered) > _CROWD:
                    count()
            else:
                uncertain.append(message)

        return settled

    # --- counting -----------------------------------------------------------------------------------------

    def count(self) -> None:
        """Take in what was delivered. Whoever comes while another thread counts leaves it to that one."""
        if self._counting.acquire(blocking=False):
            try:
                self._count()
            finally:
                self._counting.release()

    def _count(self) -> None:
        counts = self._counts if self._transaction is None else self._transaction.counts
        length = self.settings.window_ms
        take = self.delivered.popleft
        taken = [take() for _ in range(len(self.delivered))]
        last_topic, last_partition, start, end = "", -1, 0, 0
        entry = [0, 0, 0]
        for topic, partition, timestamp, key, value in self._fields(taken):
            # Neighbours mostly belong together: a batch is of one partition, and of one moment.
            if partition != last_partition or not start <= timestamp < end or topic != last_topic:
                last_topic, last_partition = topic, partition
                start = window_of(timestamp, length)
                end = start + length
                cell = Cell(topic, partition, start)
                found = counts.get(cell)
                if found is None:
                    found = counts[cell] = [0, 0, 0]
                entry = found
            a, b = record_hash(key, value, timestamp)
            entry[0] += 1
            entry[1] += a
            entry[2] += b

    def _count_uncertain(self, now_ms: int) -> None:
        taken = [self.uncertain.popleft() for _ in range(len(self.uncertain))]
        for topic, partition, timestamp, _, _ in self._failed(taken):
            moment = timestamp if timestamp >= 0 else now_ms
            cell = Cell(topic, partition, window_of(moment, self.settings.window_ms))
            self._uncertain[cell] = self._uncertain.get(cell, 0) + 1

    # --- transactions: what is acknowledged counts only when it is committed ------------------------------

    def begin_transaction(self, now_ms: int) -> None:
        with self._counting:
            self._count()
            self._transaction = _Transaction(now_ms)

    def end_transaction(self, *, committed: bool | None) -> None:
        """None: nobody knows, so all of it is uncertain."""
        with self._counting:
            self._count()
            ended, self._transaction = self._transaction, None
            if ended is None:
                return
            for cell, (count, a, b) in ended.counts.items():
                if committed:
                    entry = self._counts.setdefault(cell, [0, 0, 0])
                    entry[0] += count
                    entry[1] += a
                    entry[2] += b
                elif committed is None:
                    self._uncertain[cell] = self._uncertain.get(cell, 0) + count
            if committed is False:
                self.uncertain.clear()

    # --- telling ------------------------------------------------------------------------------------------

    def event(self, now_ms: int, *, closing: bool = False) -> Event:
        """What there is to tell now, or as much of it as one event holds; see `has_more`.

        The first event of a ledger is empty; see `headrace.audit.event`.
        """
        self._begin(now_ms)
        with self._counting:
            # First who is still out, then what has come in: a record that settles between the two is told of
            # and called outstanding, never left out.
            still = [(since, settled) for since, settled in self._outstanding[:-1] if settled() is not None]
            self._outstanding = [*still, self._outstanding[-1]]
            since = [began for began, _ in still]
            if self._transaction is not None:
                since.append(self._transaction.began_ms)
            self._count()
            self._count_uncertain(now_ms)
            counts = tuple(self._take())
        # While something is left to tell, nothing more is complete: another may never come.
        if not self.has_more:
            self._complete_until_ms = min(since, default=now_ms)
        sequence, self._sequence = self._sequence, self._sequence + 1
        return Event(
            self.settings.producer,
            self.incarnation,
            self.settings.server,
            self.started_ms,
            sequence,
            now_ms,
            self._complete_until_ms,
            round(self.settings.report_seconds * 1000),
            self.settings.window_ms,
            # Who leaves something outstanding behind does not close: nobody will ever tell of it.
            closing and not since and not self.has_more,
            counts,
        )

    def _take(self) -> Iterator[Count]:
        cells = sorted({*self._counts, *self._uncertain})
        self.has_more = len(cells) > _CELLS_AT_MOST
        for cell in cells[:_CELLS_AT_MOST]:
            count, a, b = self._counts.pop(cell, (0, 0, 0))
            yield Count(cell, Tally(count, a & MASK, b & MASK), self._uncertain.pop(cell, 0))


class _Transaction:
    __slots__ = ("began_ms", "counts")

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.counts: dict[Cell, list[int]] = {}
