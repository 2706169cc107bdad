"""A table that records are written into, and how far they were, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.connect.api import GiveUp
from headrace.connect.postgres.catalogue import KeyColumn, primary_key
from headrace.connect.postgres.database import quoted, quoted_table, rows, statement, told
from headrace.connect.upserts import Key, Outcome
from headrace.core.ids import TopicPartition

if TYPE_CHECKING:
    from psycopg import Connection

_MADE_BY_ONE: Final = 4_816_071_203
"""A number for a lock: of tasks that begin at once, one makes the table of positions."""


class TargetTable(NamedTuple):
    name: str
    key: tuple[KeyColumn, ...]
    types: Mapping[str, str]
    """Of all columns that can be written."""

    @property
    def key_names(self) -> list[str]:
        return [column.name for column in self.key]


def target_table(connection: Connection[Any], name: str) -> TargetTable:
    key = primary_key(connection, name)
    found = rows(
        connection,
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = "
        "%s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        [quoted_table(name)],
    )
    return TargetTable(name, key, dict(found))


def write(connection: Connection[Any], table: TargetTable, found: Outcome) -> None:
    """In the caller's transaction. In the order of keys, so that tasks do not wait for each other in a
    circle."""
    gone = sorted(found.deleted | found.replaced, key=_order)
    _many(connection, _delete(table), gone)
    by_columns: dict[tuple[str, ...], list[Key]] = {}
    for key in sorted(found.rows, key=_order):
        by_columns.setdefault(tuple(sorted(found.rows[key])), []).append(key)
    for names, keys in by_columns.items():
        _many(connection, _upsert(table, names), ([found.rows[key][n] for n in names] for key in keys))


def _many(connection: Connection[Any], query: str, values: Iterable[Sequence[Any]]) -> None:
    given = list(values)
    if given:
        with connection.cursor() as cursor:
            cursor.executemany(statement(query, given)[0], given)


def _delete(table: TargetTable) -> str:
    conditions = [f"{quoted(c.name)} = {_given(c.type_name)}" for c in table.key]
    return f"DELETE FROM {quoted_table(table.name)} WHERE {' AND '.join(conditions)}"


def _upsert(table: TargetTable, names: Sequence[str]) -> str:
    listed = ", ".join(quoted(name) for name in names)
    values = ", ".join(_given(table.types[name]) for name in names)
    changed = [f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in names if name not in table.key_names]
    keys = ", ".join(quoted(name) for name in table.key_names)
    return f"INSERT INTO {quoted_table(table.name)} ({listed}) VALUES ({values}) ON CONFLICT ({keys}) DO " + (
        f"UPDATE SET {', '.join(changed)}" if changed else "NOTHING"
    )


def _given(type_name: str) -> str:
    return f"%s::text::{type_name}"


def _order(key: Key) -> tuple[str, ...]:
    return tuple(each or "" for each in key)


class Positions:
    """How far a connector is, in a table of the target itself."""

    def __init__(self, connection: Connection[Any], table: str, connector: str) -> None:
        self._connection = connection
        self._table = quoted_table(table)
        self._name = table
        self._connector = connector

    def make(self) -> None:
        if rows(self._connection, "SELECT to_regclass(%s) IS NOT NULL", [self._table])[0][0]:
            return
        with (
            told(f"make {self._name}, where the connector keeps its positions"),
            self._connection.transaction(),
        ):
            rows(self._connection, "SELECT pg_advisory_xact_lock(%s)", [_MADE_BY_ONE])
            self._connection.execute(
                *statement(
                    f"CREATE TABLE IF NOT EXISTS {self._table} (connector text, topic text, partition int, "
                    "next_offset bigint NOT NULL, PRIMARY KEY (connector, topic, partition))"
                )
            )

    def all(self) -> dict[TopicPartition, int]:
        query = f"SELECT topic, partition, next_offset FROM {self._table} WHERE connector = %s"
        found = rows(self._connection, query, [self._connector])
        return {TopicPartition(topic, partition): offset for topic, partition, offset in found}

    def locked(self, partition: TopicPartition) -> int:
        """What is written up to here is there already. Nobody else writes of this partition until the
        transaction ends."""
        values = [self._connector, partition.topic, partition.partition]
        made = f"INSERT INTO {self._table} VALUES (%s, %s, %s, 0) ON CONFLICT DO NOTHING"
        self._connection.execute(*statement(made, values))
        where = "WHERE connector = %s AND topic = %s AND partition = %s FOR UPDATE"
        return int(rows(self._connection, f"SELECT next_offset FROM {self._table} {where}", values)[0][0])

    def put(self, partition: TopicPartition, offset: int | None) -> None:
        values = [self._connector, partition.topic, partition.partition]
        if offset is None:
            where = "WHERE connector = %s AND topic = %s AND partition = %s"
            self._connection.execute(*statement(f"DELETE FROM {self._table} {where}", values))
            return
        query = (
            f"INSERT INTO {self._table} VALUES (%s, %s, %s, %s) ON CONFLICT (connector, topic, partition) "
            "DO UPDATE SET next_offset = EXCLUDED.next_offset"
        )
        self._connection.execute(*statement(query, [*values, offset]))


def table_name(form: str, topic: str) -> str:
    """Of a topic as changes of a database name them, PREFIX.SCHEMA.TABLE, `${table}` is SCHEMA.TABLE."""
    parts = topic.split(".")
    name = form.replace("${topic}", topic).replace("${table}", ".".join(parts[-2:]))
    if name.count(".") == 0:
        name = f"public.{name}"
    if name.count(".") != 1:
        raise GiveUp(
            f"topic {topic} would go to table {name}, which is not SCHEMA.TABLE: set table.name.format, for "
            "example to public.orders, or to ${table} for topics named PREFIX.SCHEMA.TABLE"
        )
    return name
