"""What readers of a topic make of changes: the table as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

Event = tuple[dict[str, Any], dict[str, Any] | None]


class _Record(Protocol):
    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


def events_of(records: Iterable[_Record]) -> list[Event]:
    return [
        (json.loads(each.key or b"{}"), None if each.value is None else json.loads(each.value))
        for each in records
    ]


def table_of(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """The last row of each key."""
    rows: dict[str, dict[str, Any]] = {}
    for key, value in events:
        name = json.dumps(key, sort_keys=True)
        if value is None or value.get("op") == "d":
            rows.pop(name, None)
        else:
            rows[name] = value.get("after", value)
    return rows
