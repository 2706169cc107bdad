"""The copy of tables, range by range: each is read in a snapshot that the worker holds open and every task
of the step takes over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.connect.api import ConnectorFailure
from headrace.connect.postgres.catalogue import KeyColumn, Table
from headrace.connect.postgres.coverage import Place
from headrace.connect.postgres.database import Address, connect, quoted, quoted_table, rows, statement, told
from headrace.connect.postgres.envelope import Event, Origin, key_of, row_of
from headrace.connect.postgres.lsn import last_byte_written, lsn_of
from headrace.connect.postgres.progress import Fresh, Key, Progress, Range
from headrace.connect.postgres.visibility import Visible, visible_of

if TYPE_CHECKING:
    from psycopg import Connection


class Snapshot(NamedTuple):
    identifier: str
    """Under which other connections see the same, for as long as this one is open."""
    visible: Visible
    until: int
    connection: Any

    def close(self) -> None:
        self.connection.close()


class Piece(NamedTuple):
    """What one task copies."""

    table: str
    after: Key | None
    to: Key | None
    snapshot: str
    lsn: int
    storage: str
    """See `storages`: before the snapshot."""


class Copy(NamedTuple):
    pieces: list[Piece]
    fresh: Fresh


def take_snapshot(address: Address, name: str) -> Snapshot:
    connection = connect(address, name)
    try:
        with told("take a snapshot"):
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            identifier, visible = rows(
                connection, "SELECT pg_export_snapshot(), pg_current_snapshot()::text"
            )[0]
            (insert,) = rows(connection, "SELECT pg_current_wal_insert_lsn()::text")[0]
            until = last_byte_written(lsn_of(insert))
            if _flushed(connection) < until:
                _flush(address, name)
    except BaseException:
        connection.close()
        raise
    return Snapshot(identifier, visible_of(visible), until, connection)


def _flushed(connection: Connection[Any]) -> int:
    return lsn_of(rows(connection, "SELECT pg_current_wal_flush_lsn()::text")[0][0])


def _flush(address: Address, name: str) -> None:
    """With synchronous_commit=off a snapshot sees transactions that a crash of Postgres would take back: they
    must not be published before they are on its disk. And the stream reads only what is there, so it could
    not come up to the snapshot. Postgres writes all of its log when a transaction is committed: this one
    changes nothing."""
    with told("write its log to the disk (pg_logical_emit_message)"), connect(address, name) as connection:
        connection.execute("SET synchronous_commit = local")
        rows(connection, "SELECT pg_logical_emit_message(true, 'headrace', '')")


def storages(connection: Connection[Any], tables: Iterable[str]) -> dict[str, str]:
    """Where the rows of each table are, now, whatever the transaction sees. TRUNCATE and some of ALTER TABLE
    put them elsewhere, and then a table is empty for every snapshot that is older."""
    query = (
        "SELECT coalesce((SELECT string_agg(concat_ws(':', relid::oid, pg_relation_filenode(relid)), ' ' "
        "ORDER BY relid::oid) FROM pg_partition_tree(t.oid)), concat_ws(':', t.oid, "
        "pg_relation_filenode(t.oid))) FROM (SELECT %s::regclass::oid) AS t(oid)"
    )
    with told("say where tables are"):
        return {name: rows(connection, query, [quoted_table(name)])[0][0] for name in tables}


def next_copy(
    connection: Connection[Any],
    snapshot: Snapshot,
    progress: Progress,
    tables: Mapping[str, Table],
    stored: Mapping[str, str],
    pieces: int,
    rows_each: int,
) -> Copy:
    """The next ranges of the tables that are left, in their order; small tables share a step. The snapshot's
    own transaction touches no table: an ALTER TABLE would wait for it, and the tasks for that."""
    found: list[Piece] = []
    ranges: dict[str, Range] = {}
    with told("find ranges to copy"), _within(connection, snapshot.identifier):
        for name in sorted(tables):
            if progress.is_copied(name):
                continue
            begin = after = progress.copied.get(name)
            while len(found) < pieces:
                to = _bound(connection, tables[name], after, rows_each)
                piece = Piece(name, after, to, snapshot.identifier, snapshot.until, stored[name])
                found.append(piece)
                ranges[name] = Range(begin, to)
                if to is None:
                    break
                after = to
            if len(found) == pieces:
                break
    return Copy(found, Fresh(snapshot.visible, snapshot.until, ranges))


@contextmanager
def _within(connection: Connection[Any], snapshot: str) -> Iterator[None]:
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        yield


def _bound(connection: Connection[Any], table: Table, after: Key | None, count: int) -> Key | None:
    """The key of the `count`th row; None if there are no more than that."""
    where, values = _above(table, after)
    names = _names(table.key)
    query = (
        f"SELECT {', '.join(f'{name}::text' for name in names)} FROM {table.source} AS it "
        f"{where} ORDER BY {', '.join(names)} LIMIT 1 OFFSET {count - 1}"
    )
    with told(f"read {table.name} (SELECT is needed on it)"):
        found = rows(connection, query, values)
    return tuple(found[0]) if found else None


def copied(connection: Connection[Any], piece: Piece, table: Table) -> Iterator[Event]:
    """In a task: the rows of a piece."""
    with told(f"read {piece.table} in snapshot {piece.snapshot}"), _within(connection, piece.snapshot):
        # From here on nobody can put them elsewhere.
        connection.execute(*statement(f"LOCK TABLE {table.source} IN ACCESS SHARE MODE"))
        if storages(connection, [table.name]) != {table.name: piece.storage}:
            raise ConnectorFailure(
                f"{table.name} was written anew (TRUNCATE, ALTER TABLE, VACUUM FULL) after the snapshot in "
                "which a range of it was to be read: the range is read again"
            )
        where, values = _above(table, piece.after)
        if piece.to is not None:
            where += f" {'AND' if where else 'WHERE'} {_row(table.key)} <= {_given(table.key)}"
            values = [*values, *piece.to]
        selected = ", ".join(quoted(column.name) for column in table.columns)
        query = f"COPY (SELECT {selected} FROM {table.source} AS it {where}) TO STDOUT"
        yield from _rows(connection, piece, table, query, values)


def _rows(
    connection: Connection[Any], piece: Piece, table: Table, query: str, values: Sequence[str]
) -> Iterator[Event]:
    """COPY gives values as pgoutput does. A cast to text does not: it strips char(10) and adds to inet."""
    columns = table.columns
    key = [at for at, column in enumerate(columns) if column.is_key]
    origin = Origin(piece.lsn, None, None, True)
    with connection.cursor() as cursor, cursor.copy(*statement(query, values)) as copy:
        for found in copy.rows():
            row = list(found)
            yield Event("r", piece.table, key_of(columns, row, key), None, row_of(columns, row), origin)


def places(connection: Connection[Any], table: Table, keys: Sequence[Key], here: Range) -> list[Place]:
    """Where keys are, by the database's own order."""
    names = [f"k{at}" for at in range(len(table.key))]
    row = (
        "("
        + ", ".join(_typed(f"u.{name}", column) for name, column in zip(names, table.key, strict=True))
        + ")"
    )
    cases, values = [], []
    for bound, place in ((here.after, Place.BEFORE), (here.to, Place.WITHIN)):
        if bound is not None:
            cases.append(f"WHEN {row} <= {_given(table.key)} THEN {int(place)}")
            values += list(bound)
    rest = Place.BEHIND if here.to is not None else Place.WITHIN
    arrays = ", ".join("%s::text[]" for _ in names)
    query = (
        f"SELECT CASE {' '.join(cases)} ELSE {int(rest)} END FROM unnest({arrays}) WITH ORDINALITY AS "
        f"u({', '.join(names)}, place) ORDER BY place"
    )
    columns = [list(each) for each in zip(*keys, strict=True)]
    with told(f"compare keys of {table.name}"):
        return [Place(place) for (place,) in rows(connection, query, [*values, *columns])]


def _above(table: Table, after: Key | None) -> tuple[str, list[str]]:
    conditions = ["(" + table.row_filter.replace("%", "%%") + ")"] if table.row_filter else []
    if after is not None:
        conditions.append(f"{_row(table.key)} > {_given(table.key)}")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return where, list(after or ())


def _names(key: Sequence[KeyColumn]) -> list[str]:
    """With the table's alias: a bare name in ORDER BY would be that of the text which is selected."""
    return [f"it.{quoted(column.name)}" for column in key]


def _row(key: Sequence[KeyColumn]) -> str:
    return f"({', '.join(_names(key))})"


def _given(key: Sequence[KeyColumn]) -> str:
    return "(" + ", ".join(_typed("%s::text", column) for column in key) + ")"


def _typed(text: str, column: KeyColumn) -> str:
    collation = f" COLLATE {column.collation}" if column.collation else ""
    return f"({text})::{column.type_name}{collation}"
