"""Records of one key, in their order, as rows to stage. Pure.

Folded, a key is one row: its last state. Where a row was refused, each record is a row of its own instead,
and those of one key have steps, so that the one to blame is found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.connect.jdbc.columns import canonical, named_as
from headrace.connect.jdbc.upserting import Target
from headrace.connect.records import Rejected, SinkRecord
from headrace.connect.upserts import BadRow, change_of

_LONGEST_REASON: Final = 1_000


class Plan(NamedTuple):
    """What a task is told."""

    target: Target
    refused: frozenset[str]
    """Characters."""
    by_key: bool
    """False: every record is a row to insert."""
    deletes: bool
    dead: frozenset[tuple[str, int, int]]
    whole: bool
    """All at once: a key is one row, and there is one step."""


class Read(NamedTuple):
    """A record, before it is brought to the others of its key."""

    key: str
    topic: str
    partition: int
    offset: int
    change: str | None
    """JSON: {index of a column: text}; null: the row goes."""
    reason: str | None
    """Why it is no row."""


class Staged(NamedTuple):
    step: int
    kind: str
    """u: a row; r: a row instead of what was there; d: it goes; x: the record is no row."""
    shape: str
    """For each column of the target, whether the row has it."""
    topic: str
    partition: int
    offset: int
    reason: str | None
    values: tuple[str | None, ...]


def read(plan: Plan, record: SinkRecord) -> Read | None:
    """None: it is passed over."""
    place = (record.topic, record.partition, record.offset)
    if place in plan.dead:
        return None
    target = plan.target
    names = frozenset(target.names)
    try:
        change = change_of(record.key, record.value, target.keys, names, lambda name: named_as(name, names))
        if change.row is None:
            if not plan.deletes:
                return None
            given: dict[str, str | None] = dict(zip(target.keys, change.key, strict=True))
        else:
            given = change.row
        row = {
            index: None if text is None else canonical(column, text, refused=plan.refused)
            for index, column in enumerate(target.columns)
            if column.name in given
            for text in (given[column.name],)
        }
    except BadRow as error:
        return unreadable(Rejected(*place, str(error)))
    key = [row[index] for index in target.key_indexes] if target.keys else list(place)
    return Read(json.dumps(key), *place, json.dumps([change.row is not None, row]), None)


def unreadable(rejected: Rejected) -> Read:
    place = (rejected.topic, rejected.partition, rejected.offset)
    # It is kept in a column, too, and has names from the record in it.
    reason = rejected.reason.encode(errors="backslashreplace").decode().replace("\x00", "\\x00")
    return Read(json.dumps(place), *place, None, reason[:_LONGEST_REASON])


def fold(plan: Plan, sorted_reads: Iterable[Read]) -> Iterator[Staged]:
    """Those of one key are given one after the other, the oldest first."""
    for _, group in groupby(sorted_reads, key=attrgetter("key")):
        rows = _folded if plan.whole and plan.by_key else _single
        yield from rows(plan, group)


def _folded(plan: Plan, reads: Iterable[Read]) -> Iterator[Staged]:
    row: dict[int, str | None] | None = None
    key: dict[int, str | None] = {}
    last: Read | None = None
    replaced = False
    for each in reads:
        if each.change is None:
            yield _refused(plan, each)
            continue
        is_row, values = _change(each)
        if is_row:
            row = {**(row or {}), **values}
        else:
            row, replaced = None, True
        key, last = values, each
    if last is None:
        return
    if row is None:
        yield _staged(plan, last, 0, "d", key)
    else:
        yield _staged(plan, last, 0, "r" if replaced else "u", row)


def _single(plan: Plan, reads: Iterable[Read]) -> Iterator[Staged]:
    for step, each in enumerate(reads):
        if each.change is None:
            yield _refused(plan, each)
            continue
        is_row, values = _change(each)
        yield _staged(plan, each, 0 if plan.whole else step, "u" if is_row else "d", values)


def _change(each: Read) -> tuple[bool, dict[int, str | None]]:
    is_row, values = json.loads(each.change or "")
    return is_row, {int(index): text for index, text in values.items()}


def _staged(plan: Plan, each: Read, step: int, kind: str, row: dict[int, str | None]) -> Staged:
    indexes: Sequence[int] = range(len(plan.target.columns))
    shape = "".join("1" if index in row else "0" for index in indexes)
    values = tuple(row.get(index) for index in indexes)
    return Staged(step, kind, shape, each.topic, each.partition, each.offset, None, values)


def _refused(plan: Plan, each: Read) -> Staged:
    count = len(plan.target.columns)
    return Staged(0, "x", "0" * count, each.topic, each.partition, each.offset, each.reason, (None,) * count)


Attempt = Callable[[int, int], str | None]
"""Tries the rows from one number to another, both of them too; what the database says against it, or None."""
Span = Callable[[int, int], tuple[int, int, int]]
"""The first and the last number that there are, and how many."""


def culprits(span: Span, attempt: Attempt, first: int, last: int) -> Iterator[tuple[int, str]]:
    """Rows that the database refuses, by halves; the others are tried and stay."""
    waiting: list[tuple[int, int]] = [(first, last)]
    while waiting:
        first, last, count = span(*waiting.pop())
        if not count or (said := attempt(first, last)) is None:
            continue
        if count == 1:
            yield first, said
            continue
        middle = (first + last) // 2
        waiting += [(middle + 1, last), (first, middle)]
