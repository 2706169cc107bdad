"""Which changes are published while tables are still being copied.

A table is copied in ranges of its primary key, one after the other, and between two of them the stream of
changes goes on, so that the database need not keep its log for as long as the copy of all tables takes. Each
range is read in a snapshot of its own, of which is known which transactions it sees (`Visible`). Then:

- a row in a range that is not copied yet: its changes are left out, since the copy will have them;
- a row in the range copied last: changes of transactions that its snapshot sees are left out, since the
  copied row has them; the others are published behind it;
- a row in an earlier range: all changes are published, since the stream has passed everything that the
  snapshot of that range saw.

This leaves out nothing that a copy does not have, if every transaction that the stream has passed is seen by
every later snapshot. Postgres alone does not promise that: a transaction is in the log a moment before it is
visible, and that moment is as long as a synchronous standby takes to answer. So the stream never passes a
transaction before it is visible (`stream.py`), and the first range of a table waits for all
transactions that were running when the slot and the publication were found to have the table (`gate.py`).
Nothing is published twice, if a snapshot sees nothing behind `Fresh.until`, which is read after the snapshot
was taken, and which the stream passes before the next range is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

from headrace.connect.postgres.progress import Key, Progress, Range


class Place(IntEnum):
    BEFORE = 0
    """In a range that was copied earlier."""
    WITHIN = 1
    """In the range that was copied last."""
    BEHIND = 2
    """In none yet."""


Places = Callable[[str, Sequence[Key], Range], Sequence[Place]]
"""Where keys of a table are, by the order of the database: only it knows its collations."""


class Coverage:
    def __init__(self, progress: Progress, tables: frozenset[str] | None, places: Places) -> None:
        """`tables`: those that are captured; None: all that come."""
        self._progress = progress
        self._tables = tables
        self._ask = places

    def is_settled(self, table: str) -> bool:
        """All changes of the table are published."""
        fresh = self._progress.fresh
        copied = self._progress.is_copied(table)
        return self._is_captured(table) and copied and (fresh is None or table not in fresh.ranges)

    def is_left_out(self, table: str) -> bool:
        """None of its changes is: it is not captured, or its copy has not begun."""
        return not self._is_captured(table) or table not in self._progress.copied

    def places(self, table: str, keys: Sequence[Key]) -> Sequence[Place]:
        """For a table that is neither. A database is asked only where keys have to be compared."""
        here = self._range(table)
        if here.to is None and here.after is None:
            return [Place.WITHIN] * len(keys)
        return self._ask(table, keys, here)

    def is_published(self, table: str, place: Place, xid: int) -> bool:
        if place is Place.BEHIND:
            return False
        fresh = self._progress.fresh
        if place is Place.BEFORE or fresh is None or table not in fresh.ranges:
            return True
        return not fresh.visible.sees(xid)

    def is_emptying_published(self, table: str, xid: int) -> bool | None:
        """Of TRUNCATE. None: a part of the table was copied before it and another part after it."""
        fresh = self._progress.fresh
        if fresh is None or table not in fresh.ranges or not fresh.visible.sees(xid):
            return True
        return False if fresh.ranges[table].after is None else None

    def _range(self, table: str) -> Range:
        fresh = self._progress.fresh
        if fresh is not None and table in fresh.ranges:
            return fresh.ranges[table]
        return Range(None, self._progress.copied[table])

    def _is_captured(self, table: str) -> bool:
        return self._tables is None or table in self._tables
