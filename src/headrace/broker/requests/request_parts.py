"""A request that lists many things, as several requests that list few each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from headrace.broker.requests.request_shapes import Listed, Shape
from headrace.protocol.message import Message, Structure

S = TypeVar("S", bound=Structure)


def is_long(request: Message, shape: Shape) -> bool:
    """Whether it lists more than is dealt with in one go."""
    if not shape.part:
        return False
    items = getattr(request, shape.lists[0].field)
    return bool(items) and _weight(items, shape.lists, shape.part, shape.part) > shape.part


def parts_of(request: Message, shape: Shape) -> Iterator[Message]:
    """Each is a request of its own. What is listed within one thing may be spread over several of them, which
    then follow one another."""
    field = shape.lists[0].field
    for items in _pieces(getattr(request, field), shape.lists, shape.part):
        yield _with(request, field, items)


def _weight(items: Sequence[Any], lists: Sequence[Listed], part: int, enough: int) -> int:
    """How many of the innermost things are listed. What asks for everything counts as a part of its own."""
    if len(lists) == 1:
        return len(items)
    total = 0
    inner = lists[1]
    for item in items:
        rows = getattr(item, inner.field)
        if rows is None or (inner.empty_asks_for_all and not rows):
            total += part
        else:
            total += 1 + _weight(rows, lists[1:], part, enough - total)
        if total > enough:
            break
    return total


def _pieces(items: Sequence[Any], lists: Sequence[Listed], part: int) -> Iterator[list[Any]]:
    if len(lists) == 1:
        yield from _runs(items, lists[0], part)
        return
    piece: list[Any] = []
    weight = 0
    for item in items:
        own = _weight((item,), lists, part, part)
        if weight + own > part and piece:
            yield piece
            piece, weight = [], 0
        if own > part + 1:
            inner = lists[1].field
            for rows in _pieces(getattr(item, inner), lists[1:], part):
                yield [_with(item, inner, rows)]
        else:
            piece.append(item)
            weight += own
    if piece:
        yield piece


def _runs(items: Sequence[Any], listed: Listed, part: int) -> Iterator[list[Any]]:
    """Equal items are neighbours, and stay together: somebody has to see that they are."""
    at = 0
    while at < len(items):
        end = min(at + part, len(items))
        if end < len(items) and listed.key(items[end]) == listed.key(items[end - 1]):
            end += 1
        yield list(items[at:end])
        at = end


def _with(whole: S, field: str, value: object) -> S:
    """The same structure with another value in one field."""
    copy = whole.__class__.__new__(whole.__class__)
    for name in whole.__slots__:
        setattr(copy, name, getattr(whole, name))
    setattr(copy, field, value)
    return copy
