"""From pgoutput's messages to events: the changes of one window, without those that a copy has already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.connect.postgres.coverage import Coverage, Place
from headrace.connect.postgres.envelope import Event, Origin, key_of, row_of
from headrace.connect.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Truncate,
    Tuple,
    Update,
    decode,
)
from headrace.connect.postgres.progress import Key
from headrace.connect.postgres.windows import Window
from headrace.core.errors import HeadraceError

_ASKED_TOGETHER: Final = 2000


class BadChange(HeadraceError):
    """A change that cannot be published, and what to do."""


class _Change(NamedTuple):
    event: Event
    key: Key
    """As Postgres prints it."""
    xid: int


class _Known(NamedTuple):
    relation: Relation
    key: tuple[int, ...]
    """Where the key's columns are."""
    order: tuple[int, ...]
    """The same in the order of its index, which is the order in which tables are copied."""


class Changes:
    """Of one window, for one table after the other as they come."""

    def __init__(
        self,
        window: Window,
        coverage: Coverage,
        keys: Mapping[str, Sequence[str]],
        truncates: str,
    ) -> None:
        """`keys`: the columns of each captured table's key, in the order of its index. `truncates`: fail,
        skip or publish."""
        self._window = window
        self._coverage = coverage
        self._keys = keys
        self._truncates = truncates
        self._relations: dict[int, _Known] = {}
        self._begin: Begin | None = None
        self._index = 0
        self._is_first = True

    def events(self, data: Iterable[bytes]) -> Iterator[Event]:
        waiting: list[_Change] = []
        for each in data:
            message = decode(each)
            if isinstance(message, Begin) and message.commit_lsn >= self._window.end:
                break
            waiting += self._changes(message)
            if len(waiting) >= _ASKED_TOGETHER:
                yield from self._published(waiting)
                waiting = []
        yield from self._published(waiting)

    def _changes(self, message: Message | None) -> list[_Change]:
        if isinstance(message, (Insert, Update, Delete, Truncate)):
            if not self._is_in_window():
                return []
            if isinstance(message, Truncate):
                return self._truncated(message)
            known = self._relations[message.oid]
            if self._coverage.is_left_out(known.relation.full_name):
                return []
            return self._of_row(known, message)
        if isinstance(message, Begin):
            self._begin, self._index = message, 0
        elif isinstance(message, Relation):
            self._relations[message.oid] = self._known(message)
        elif isinstance(message, Commit):
            if message.commit_lsn >= self._window.start:
                self._is_first = False
            self._begin = None
        return []

    def _is_in_window(self) -> bool:
        """Counts the change."""
        assert self._begin is not None, "every change is in a transaction"
        self._index += 1
        window = self._window
        if self._begin.commit_lsn < window.start:
            return False
        if not self._is_first:
            return window.most is None
        return self._index > window.skip and (window.most is None or self._index <= window.most)

    def _of_row(self, known: _Known, message: Insert | Update | Delete) -> list[_Change]:
        columns = known.relation.columns
        if isinstance(message, Insert):
            return [self._change("c", known, message.new, None, None)]
        if isinstance(message, Delete):
            before = message.old if message.old_is_whole else None
            return [self._change("d", known, message.old, before, None)]
        whole = message.old if message.old_is_whole else None
        if message.old is not None:
            # With the whole row as identity the old one always comes, moved or not.
            moved = any(
                message.new[at] is not UNCHANGED and message.new[at] != message.old[at] for at in known.key
            )
            if moved:
                new = _filled(message.new, message.old, known.key)
                return [
                    self._change("d", known, message.old, whole, None),
                    self._change("c", known, new, None, whole),
                ]
            if any(message.new[at] is UNCHANGED for at in known.key):
                filled = _filled(message.new, message.old, known.key)
                return [self._change("u", known, filled, whole, whole)]
        assert len(columns) == len(message.new)
        return [self._change("u", known, message.new, whole, whole)]

    def _change(
        self, op: str, known: _Known, values: Tuple, before: Tuple | None, fallback: Tuple | None
    ) -> _Change:
        begin, relation = self._begin, known.relation
        assert begin is not None
        if not known.key:
            raise BadChange(
                f"a change of {relation.full_name} has no key, because the table has none: add a primary "
                "key, or name a unique index (ALTER TABLE ... REPLICA IDENTITY USING INDEX ...), or take the "
                "table out of table.include.list"
            )
        columns = relation.columns
        event = Event(
            op,
            relation.full_name,
            key_of(columns, values, known.key),
            None if before is None else row_of(columns, before),
            None if op == "d" else row_of(columns, values, fallback),
            Origin(begin.commit_lsn, begin.xid, begin.committed_ms, False, self._index),
        )
        return _Change(event, tuple(str(values[at]) for at in known.order), begin.xid)

    def _truncated(self, message: Truncate) -> list[_Change]:
        begin = self._begin
        assert begin is not None
        names = [self._relations[oid].relation.full_name for oid in message.oids]
        names = [each for each in names if self._is_emptying_published(each, begin.xid)]
        if not names or self._truncates == "skip":
            return []
        if self._truncates == "fail":
            raise BadChange(
                f"TRUNCATE emptied {', '.join(names)} in transaction {begin.xid}, and no record can say so "
                "to readers of single keys. Set truncate.handling.mode to publish (a record with op t and no "
                "key) or to skip, and restart the connector"
            )
        origin = Origin(begin.commit_lsn, begin.xid, begin.committed_ms, False, self._index)
        return [_Change(Event("t", each, None, None, None, origin), (), begin.xid) for each in names]

    def _is_emptying_published(self, table: str, xid: int) -> bool:
        if self._coverage.is_left_out(table):
            return False
        published = self._coverage.is_emptying_published(table, xid)
        if published is None and self._truncates != "skip":
            raise BadChange(
                f"TRUNCATE emptied {table} while it was being copied: stop the connector, DELETE its offsets "
                "and resume, to copy it anew"
            )
        return bool(published)

    def _published(self, waiting: list[_Change]) -> Iterator[Event]:
        by_table: dict[str, list[int]] = {}
        for at, change in enumerate(waiting):
            if change.event.op != "t" and not self._coverage.is_settled(change.event.table):
                by_table.setdefault(change.event.table, []).append(at)
        hidden: set[int] = set()
        for table, numbers in by_table.items():
            places = self._coverage.places(table, [waiting[at].key for at in numbers])
            for at, place in zip(numbers, places, strict=True):
                if not self._coverage.is_published(table, Place(place), waiting[at].xid):
                    hidden.add(at)
        for at, change in enumerate(waiting):
            if at not in hidden:
                yield change.event

    def _known(self, relation: Relation) -> _Known:
        named = {column.name: at for at, column in enumerate(relation.columns)}
        names = self._keys.get(relation.full_name, ())
        order = tuple(named[name] for name in names if name in named)
        if relation.identity == "f":
            return _Known(relation, tuple(sorted(order)), order)
        key = tuple(at for at, column in enumerate(relation.columns) if column.is_key)
        return _Known(relation, key, order if sorted(order) == list(key) else key)


def _filled(new: Tuple, old: Tuple, key: tuple[int, ...]) -> Tuple:
    """Of a key that is stored apart and did not change, the old value."""
    return [old[at] if at in key and value is UNCHANGED else value for at, value in enumerate(new)]
