"""How far a source is: for each of its partitions an offset, both small JSON objects, as in Kafka Connect.

What a partition is, the connector says: a file, a table, a shard. The form with `offsets` is the one that
`GET /connectors/NAME/offsets` answers and the one that is kept in the decision of a batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headrace.core.errors import HeadraceError

Json = Mapping[str, Any]


class BadPosition(HeadraceError):
    """Something is given as a position, or as a change of one, that cannot be one."""


class Position:
    """A value: `moved` and `without` return another one."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, dict[str, Any]] | None = None) -> None:
        self._entries: Final = dict(entries or {})

    def offset(self, partition: Json) -> dict[str, Any] | None:
        """Where this partition goes on, or None if it has not begun."""
        found = self._entries.get(_key(partition))
        return None if found is None else dict(found)

    def moved(self, partition: Json, offset: Json) -> Position:
        return Position({**self._entries, _key(partition): dict(offset)})

    def without(self, partition: Json) -> Position:
        key = _key(partition)
        return Position({each: offset for each, offset in self._entries.items() if each != key})

    def document(self) -> dict[str, Any]:
        return {
            "offsets": [
                {"partition": json.loads(key), "offset": dict(offset)}
                for key, offset in self._entries.items()
            ]
        }

    def text(self) -> str:
        return json.dumps(self.document(), separators=(",", ":"), ensure_ascii=False)

    def __iter__(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for key, offset in self._entries.items():
            yield json.loads(key), dict(offset)

    def __len__(self) -> int:
        return len(self._entries)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self.text())

    def __repr__(self) -> str:
        return f"Position({self.text()})"


NOWHERE: Final = Position()
"""Of a source that has not begun."""


def position_of(text: str | None) -> Position:
    """Of what `Position.text` has written; None is a source that has not begun. Raises BadPosition."""
    if text is None:
        return NOWHERE
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadPosition(f"a position is JSON: {error}") from None
    found = NOWHERE
    for partition, offset in changes_of(document):
        if offset is not None:
            found = found.moved(partition, offset)
    return found


def changes_of(document: object) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """The pairs of `{"offsets": [{"partition": {...}, "offset": {...} or null}]}`. Raises BadPosition."""
    entries = document.get("offsets") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise BadPosition('positions are {"offsets": [{"partition": {...}, "offset": {...}}, ...]}')
    found: list[tuple[dict[str, Any], dict[str, Any] | None]] = []
    for entry in entries:
        partition = entry.get("partition") if isinstance(entry, dict) else None
        offset = entry.get("offset") if isinstance(entry, dict) else None
        if not isinstance(partition, dict) or not (offset is None or isinstance(offset, dict)):
            raise BadPosition(f"an entry has a partition and an offset, both JSON objects, not {entry!r}")
        found.append((partition, offset))
    return found


def altered(position: Position, changes: list[tuple[dict[str, Any], dict[str, Any] | None]]) -> Position:
    """A change to None takes the partition out: it begins anew."""
    for partition, offset in changes:
        position = position.without(partition) if offset is None else position.moved(partition, offset)
    return position


def _key(partition: Json) -> str:
    """The same for the same object, in whatever order its members came."""
    return json.dumps(dict(partition), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
