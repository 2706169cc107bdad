"""A thing that a request mentions several times is dealt with and answered once. The last mention counts.

Apache Kafka does the same wherever it makes a map or a set of a request, and answers each mention elsewhere.
No client library mentions a thing twice. Whoever does it by hand gets an answer whose size follows from what
exists, not from how often it was asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from headrace.broker.requests.request_shapes import Listed, Shape
from headrace.protocol.message import Message


def drop_duplicates(request: Message, shape: Shape) -> None:
    """Leave one mention of each thing in the request; two where the handler refuses what comes twice."""
    if not shape.lists:
        return
    field = shape.lists[0].field
    items = getattr(request, field)
    if items:
        setattr(request, field, _distinct(items, shape.lists, 2 if shape.refuses_duplicates else 1))


def _distinct(items: list[Any], lists: Sequence[Listed], most: int) -> list[Any]:
    """The items themselves, merged where several have one key."""
    inner = lists[1:]
    if len(items) > 1:
        items = _merged(items, lists[0], inner[0]) if inner else _last(items, lists[0], most)
    if inner:
        field = inner[0].field
        for item in items:
            rows = getattr(item, field)
            if rows is not None and (len(rows) > 1 or len(inner) > 1):
                setattr(item, field, _distinct(rows, inner, most))
    return items


def _merged(items: list[Any], listed: Listed, inner: Listed) -> list[Any]:
    """Items that have lists of their own: the lists of equal ones are joined."""
    key, field = listed.key, inner.field
    found: dict[Hashable, Any] = {}
    for item in items:
        first = found.setdefault(key(item), item)
        if first is item:
            continue
        rows, more = getattr(first, field), getattr(item, field)
        if rows is None or more is None or (inner.empty_asks_for_all and not (rows and more)):
            setattr(first, field, None)
        else:
            rows += more
    return list(found.values())


def _last(items: list[Any], listed: Listed, most: int) -> list[Any]:
    """In the order of the first mentions."""
    key = listed.key
    found: dict[Hashable, Any] = {key(item): item for item in items}
    if len(found) == len(items):
        return items
    if most == 1:
        return list(found.values())
    counts: dict[Hashable, int] = {}
    for item in items:
        counts[key(item)] = counts.get(key(item), 0) + 1
    return [item for name, item in found.items() for _ in range(min(most, counts[name]))]
