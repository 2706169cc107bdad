"""A table that records are written into, and how far they were, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.connect.api import GiveUp
from headrace.connect.postgres.catalogue import KeyColumn, primary_key
from headrace.connect.postgres.database import quoted, quoted_table, rows, statement, told
from headrace.connect.upserts import Change, Key, Outcome
from headrace.core.ids import TopicPartition

if TYPE_CHECKING:
    from psycopg import Connection

_WHOLE: Final = ("smallint", "integer", "bigint")
_TEXTS: Final = ("text", "character varying")
_MADE_BY_ONE: Final = 4_816_071_203
"""A number for a lock: of tasks that begin at once, one makes the table of positions."""


class TargetTable(NamedTuple):
    name: str
    key: tuple[KeyColumn, ...]
    types: Mapping[str, str]
    """Of all columns that can be written, without their lengths: the column itself says what is too long,
    where a cast would cut it."""
    required: frozenset[str] = frozenset()
    """A new row has to have them."""

    @property
    def key_names(self) -> list[str]:
        return [column.name for column in self.key]


def target_table(connection: Connection[Any], name: str) -> TargetTable:
    key = primary_key(connection, name)
    found = rows(
        connection,
        "SELECT attname::text, format_type(atttypid, -1), attnotnull AND NOT atthasdef AND attidentity = '' "
        "FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attgenerated = ''",
        [quoted_table(name)],
    )
    types = {column: type_name for column, type_name, _ in found}
    return TargetTable(name, key, types, frozenset(column for column, _, required in found if required))


def one_spelling(
    connection: Connection[Any], table: TargetTable, changes: Sequence[Change]
) -> Sequence[Change]:
    """Keys that the table takes for the same, as two spellings of a UUID, are spelled as the first of them:
    else nobody knew which of their changes is the last."""
    keys = list(dict.fromkeys(change.key for change in changes))
    if all(_is_plain(column, key[at]) for at, column in enumerate(table.key) for key in keys):
        return changes
    names = [f"u.k{at}" for at in range(len(table.key))]
    typed = ", ".join(
        f"({name})::{c.type_name}" + (f" COLLATE {c.collation}" if c.collation else "")
        for name, c in zip(names, table.key, strict=True)
    )
    aliases = ", ".join(f"k{at}" for at in range(len(table.key)))
    query = (
        f"SELECT min(u.place) OVER (PARTITION BY {typed}) "
        f"FROM unnest({', '.join('%s::text[]' for _ in names)}) WITH ORDINALITY AS u({aliases}, place) "
        "ORDER BY u.place"
    )
    found = rows(connection, query, [list(each) for each in zip(*keys, strict=True)])
    first = {key: keys[place - 1] for key, (place,) in zip(keys, found, strict=True)}
    return [Change(first[change.key], change.row) for change in changes]


def _is_plain(column: KeyColumn, text: str | None) -> bool:
    """One value has one spelling."""
    if column.type_name in _WHOLE:
        return text is not None and text.isascii() and text.isdigit() and (text == "0" or text[0] != "0")
    return column.type_name in _TEXTS and column.collation is None


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
    """What lacks a column that a new row has to have can only be an update, and is tried as one first:
    Postgres checks the row to insert before it looks whether it is there."""
    listed = ", ".join(quoted(name) for name in names)
    values = ", ".join(_given(table.types[name]) for name in names)
    target = quoted_table(table.name)
    changed = [name for name in names if name not in table.key_names]
    keys = ", ".join(quoted(name) for name in table.key_names)
    rows_to_insert, before = f"VALUES ({values})", ""
    if not table.required <= set(names):
        same = " AND ".join(f"it.{quoted(name)} = given.{quoted(name)}" for name in table.key_names)
        update = f"UPDATE {target} AS it SET " + ", ".join(
            f"{quoted(n)} = given.{quoted(n)}" for n in changed
        )
        there = (
            f"{update} FROM given WHERE {same} RETURNING 1"
            if changed
            else (f"SELECT 1 FROM {target} AS it, given WHERE {same}")
        )
        before = f"WITH given ({listed}) AS (VALUES ({values})), there AS ({there}) "
        rows_to_insert = "SELECT * FROM given WHERE NOT EXISTS (SELECT FROM there)"
    then = ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in changed)
    return (
        f"{before}INSERT INTO {target} ({listed}) OVERRIDING SYSTEM VALUE {rows_to_insert} "
        f"ON CONFLICT ({keys}) DO " + (f"UPDATE SET {then}" if changed else "NOTHING")
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
