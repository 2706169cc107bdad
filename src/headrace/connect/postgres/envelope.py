"""A row and a change as JSON, in the form that Debezium made common, or as plain rows."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headrace.connect.postgres.lsn import lsn_text
from headrace.connect.postgres.pgoutput import UNCHANGED, Column, Tuple, Value
from headrace.connect.records import Record

_INTEGERS: Final = (20, 21, 23, 26)
_FLOATS: Final = (700, 701)
_BOOLEAN: Final = 16
_Rendered = int | float | bool | str
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Origin(NamedTuple):
    """Where a change comes from."""

    lsn: int
    xid: int | None
    committed_ms: int | None
    snapshot: bool
    number: int = 0
    """Of the change in its transaction: with `lsn` it is a number that rises."""


class Naming(NamedTuple):
    """What a connector's records have in common."""

    prefix: str
    database: str
    plain: bool
    """Rows without an envelope."""
    tombstones: bool

    def topic(self, table: str) -> str:
        return f"{self.prefix}.{table}"


class Row(NamedTuple):
    """Named values of a row, ready for JSON."""

    values: dict[str, _Rendered | None]
    unchanged: list[str]
    """Columns whose values Postgres did not send."""


def row_of(columns: Sequence[Column], values: Tuple, fallback: Tuple | None = None) -> Row:
    """`fallback`: the whole row as it was, for values that are not sent because they did not change."""
    found: dict[str, _Rendered | None] = {}
    unchanged = []
    for at, (column, value) in enumerate(zip(columns, values, strict=True)):
        if value is UNCHANGED and fallback is not None:
            value = fallback[at]
        if value is UNCHANGED:
            unchanged.append(column.name)
        elif value is None:
            found[column.name] = None
        else:
            found[column.name] = rendered(column.type_oid, value)
    return Row(found, unchanged)


def rendered(type_oid: int, text: str) -> _Rendered:
    """Whole numbers, floating ones and booleans are JSON's; all else is Postgres' own text, so that nothing
    of it is lost."""
    if type_oid in _INTEGERS:
        return int(text)
    if type_oid == _BOOLEAN:
        return text == "t" or text == "true"
    if type_oid in _FLOATS:
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def key_of(columns: Sequence[Column], values: Tuple, key: Sequence[int]) -> dict[str, Any]:
    return {columns[at].name: _rendered(columns[at].type_oid, values[at]) for at in key}


def _rendered(type_oid: int, value: Value) -> _Rendered | None:
    assert value is not UNCHANGED, "a key is sent"
    return None if value is None else rendered(type_oid, value)


class Event(NamedTuple):
    """One change of one row."""

    op: str
    """r: copied, c: made, u: changed, d: deleted, t: all rows of a table."""
    table: str
    key: dict[str, Any] | None
    before: Row | None
    after: Row | None
    origin: Origin


def records_of(event: Event, naming: Naming, now_ms: Callable[[], int]) -> list[Record]:
    topic = naming.topic(event.table)
    key = None if event.key is None else _encode(event.key).encode()
    stamp = event.origin.committed_ms
    if naming.plain and event.op == "d":
        return [Record(topic, None, key, timestamp_ms=stamp)]
    value = _plain(event) if naming.plain else _enveloped(event, naming, now_ms())
    records = [Record(topic, _encode(value).encode(), key, timestamp_ms=stamp)]
    if event.op == "d" and naming.tombstones:
        records.append(Record(topic, None, key, timestamp_ms=stamp))
    return records


def _plain(event: Event) -> Mapping[str, Any]:
    origin, row = event.origin, event.after
    meta = {"__op": event.op, "__lsn": lsn_text(origin.lsn), "__index": origin.number}
    if row is None:
        return meta
    if row.unchanged:
        meta["__unchanged"] = row.unchanged
    return {**row.values, **meta}


def _enveloped(event: Event, naming: Naming, now_ms: int) -> Mapping[str, Any]:
    origin = event.origin
    schema, _, table = event.table.partition(".")
    found: dict[str, Any] = {
        "before": None if event.before is None else event.before.values,
        "after": None if event.after is None else event.after.values,
        "source": {
            "connector": "headrace-postgres",
            "name": naming.prefix,
            "db": naming.database,
            "schema": schema,
            "table": table,
            "snapshot": origin.snapshot,
            "txId": origin.xid,
            "lsn": origin.lsn,
            "index": origin.number,
            "ts_ms": origin.committed_ms,
        },
        "op": event.op,
        "ts_ms": now_ms,
    }
    if event.after is not None and event.after.unchanged:
        found["unchanged"] = event.after.unchanged
    return found
