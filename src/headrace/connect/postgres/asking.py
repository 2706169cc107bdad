"""Rows of a table that are new by a column that rises: a number, a time, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.connect.api import GiveUp
from headrace.connect.postgres.catalogue import Table, table_of
from headrace.connect.postgres.database import quoted, quoted_table, rows, statement, told
from headrace.connect.postgres.envelope import Row, key_of, row_of
from headrace.connect.postgres.visibility import visible_of

if TYPE_CHECKING:
    from psycopg import Connection

Place = tuple[str, ...]
"""The values of the rising columns, as Postgres prints them."""


@dataclass(frozen=True)
class Question:
    timestamp: str | None
    incrementing: str | None
    delay_ms: int
    limit: int

    @property
    def columns(self) -> list[str]:
        return [each for each in (self.timestamp, self.incrementing) if each]


class Answer(NamedTuple):
    """What one task reads."""

    table: str
    after: Place | None
    to: Place


class Asking:
    """On the worker.

    Numbers are given to rows before they are committed, so a row can appear below one that was read. A bound
    is used only when every transaction that was running when it was found has ended."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._waiting: dict[str, tuple[Place, int]] = {}

    def next(self, connection: Connection[Any], table: str, after: Place | None) -> Answer | None:
        with told(f"look for new rows of {table}"):
            waiting = self._waiting.get(table)
            if waiting is None:
                to = self._bound(connection, table, after)
                if to is None:
                    return None
                number = int(rows(connection, "SELECT pg_current_xact_id()::text")[0][0])
                waiting = self._waiting[table] = (to, number)
            to, number = waiting
            if visible_of(rows(connection, "SELECT pg_current_snapshot()::text")[0][0]).xmin < number:
                return None
        del self._waiting[table]
        return Answer(table, after, to)

    def _bound(self, connection: Connection[Any], table: str, after: Place | None) -> Place | None:
        types = types_of(connection, table, self._question.columns)
        names = [f"it.{quoted(each)}" for each in types]
        where, values = conditions(types, after, None)
        if self._question.timestamp and self._question.delay_ms:
            where.append(
                f"it.{quoted(self._question.timestamp)} < now() - interval '{self._question.delay_ms} ms'"
            )
        listed = ", ".join(names)
        order = ", ".join(f"{name} DESC" for name in names)
        found = rows(
            connection,
            f"SELECT {', '.join(f'{name}::text' for name in names)} FROM (SELECT {listed} FROM "
            f"{quoted_table(table)} AS it {_where(where)} ORDER BY {listed} LIMIT {self._question.limit}) AS "
            f"it ORDER BY {order} LIMIT 1",
            values,
        )
        return tuple(found[0]) if found else None


def answered(
    connection: Connection[Any], answer: Answer, columns: Sequence[str]
) -> Iterator[tuple[dict[str, Any], Row]]:
    """Key and row, in the order of the rising columns."""
    with told(f"read new rows of {answer.table}"):
        table: Table = table_of(connection, answer.table)
        types = types_of(connection, answer.table, columns)
        where, values = conditions(types, answer.after, answer.to)
        selected = ", ".join(f"it.{quoted(column.name)}" for column in table.columns)
        order = ", ".join(f"it.{quoted(each)}" for each in types)
        query = (
            f"COPY (SELECT {selected} FROM {quoted_table(answer.table)} AS it {_where(where)} "
            f"ORDER BY {order}) TO STDOUT"
        )
        key = [at for at, column in enumerate(table.columns) if column.is_key]
        with connection.cursor() as cursor, cursor.copy(*statement(query, values)) as copy:
            for found in copy.rows():
                row = list(found)
                yield key_of(table.columns, row, key), row_of(table.columns, row)


def types_of(connection: Connection[Any], table: str, columns: Sequence[str]) -> dict[str, str]:
    found = dict(
        rows(
            connection,
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [quoted_table(table)],
        )
    )
    if not found:
        raise GiveUp(f"table {table} does not exist: table.include.list names tables as schema.table")
    if absent := [each for each in columns if each not in found]:
        raise GiveUp(f"table {table} has no column {', '.join(absent)}: it has {', '.join(found)}")
    return {each: found[each] for each in columns}


def conditions(
    types: Mapping[str, str], after: Place | None, to: Place | None
) -> tuple[list[str], list[str]]:
    row = "(" + ", ".join(f"it.{quoted(each)}" for each in types) + ")"
    given = "(" + ", ".join(f"%s::text::{each}" for each in types.values()) + ")"
    where = [f"it.{quoted(each)} IS NOT NULL" for each in types]
    values: list[str] = []
    for sign, bound in ((">", after), ("<=", to)):
        if bound is not None:
            where.append(f"{row} {sign} {given}")
            values += bound
    return where, values


def _where(found: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(found)}"
