"""What a batch of records comes to in a table: for each key, one row or none. Pure.

Only the last state of a key in a batch is written. A record may have some columns only (a value that a
database did not send): then the others stay as an earlier record of the batch, or the table, has them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headrace.core.errors import HeadraceError

Key = tuple[str | None, ...]
"""As texts, in the order of the key's columns."""
Columns = Mapping[str, str | None]


class BadRow(HeadraceError):
    """A record that is no row of the table, and why."""


class Change(NamedTuple):
    key: Key
    row: dict[str, str | None] | None
    """None: the row goes."""


class Outcome(NamedTuple):
    rows: dict[Key, dict[str, str | None]]
    replaced: set[Key]
    """Of these, those that were deleted before in the same batch: columns without a value are NULL."""
    deleted: set[Key]


def change_of(
    key: Any,
    value: Any,
    key_columns: Sequence[str],
    columns: Iterable[str],
    named: Callable[[str], str] = str,
) -> Change:
    """Of a record: plain rows, and the envelope of changes of a database. `named` is the column of a field.
    Raises BadRow."""
    document = _object(value, "value") if value is not None else None
    if document is not None and "op" in document and ("after" in document or "before" in document):
        document = None if document["op"] == "d" else _object(document.get("after"), "after")
    if document is not None:
        document = {name if name.startswith("__") else named(name): each for name, each in document.items()}
    found = _key(key, document, key_columns, named)
    if document is None:
        return Change(tuple(found.values()), None)
    known = set(columns)
    if strange := [name for name in document if name not in known and not name.startswith("__")]:
        raise BadRow(f"the table has no column {', '.join(sorted(strange))}")
    row = {name: _storable(name, text(each)) for name, each in document.items() if name in known}
    return Change(tuple(found.values()), {**row, **found})


def outcome(changes: Iterable[Change]) -> Outcome:
    found = Outcome({}, set(), set())
    for key, row in changes:
        if row is None:
            found.rows.pop(key, None)
            found.replaced.discard(key)
            found.deleted.add(key)
        else:
            if key in found.deleted:
                found.deleted.discard(key)
                found.replaced.add(key)
            found.rows[key] = {**found.rows.get(key, {}), **row}
    return found


class Literal(str):
    """A number with a point or an exponent, as the record writes it: a float would lose its digits."""

    __slots__ = ()


def text(value: Any) -> str | None:
    """As a database reads it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return _json(value)
    return repr(value) if isinstance(value, float) else str(value)


def _json(value: Any) -> str:
    if isinstance(value, dict):
        fields = (f"{json.dumps(name, ensure_ascii=False)}:{_json(each)}" for name, each in value.items())
        return "{" + ",".join(fields) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return str(value) if isinstance(value, Literal) else json.dumps(value, ensure_ascii=False)


def _storable(name: str, found: str | None) -> str | None:
    if found is not None and not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            raise BadRow(f"{name} has half a surrogate pair, which is no character") from None
    return found


def _key(
    key: Any, row: Mapping[str, Any] | None, key_columns: Sequence[str], named: Callable[[str], str]
) -> dict[str, str | None]:
    parsed = _parsed(key, "key")
    if isinstance(parsed, dict):
        given: Mapping[str, Any] = {named(name): each for name, each in parsed.items()}
    elif parsed is not None and len(key_columns) == 1:
        given = {key_columns[0]: parsed}
    else:
        given = row or {}
    if absent := [name for name in key_columns if given.get(name) is None]:
        raise BadRow(f"neither the record's key nor its value has {', '.join(absent)}, the table's key")
    return {name: _storable(name, text(given[name])) for name in key_columns}


def _object(value: Any, what: str) -> dict[str, Any]:
    parsed = _parsed(value, what)
    if not isinstance(parsed, dict):
        raise BadRow(f"the {what} is no JSON object")
    return parsed


def _parsed(value: Any, what: str) -> Any:
    if not isinstance(value, (bytes, str)):
        return value
    try:
        return json.loads(value, parse_float=Literal)
    except (ValueError, RecursionError):
        if what == "key":
            return value.decode(errors="replace") if isinstance(value, bytes) else value
        raise BadRow(f"the {what} is no JSON") from None
