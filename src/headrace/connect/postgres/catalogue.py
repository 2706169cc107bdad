"""What is captured: the database, its slot, its publication and the tables. What is missing is made, or
told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.postgres.database import quoted, quoted_table, rows, statement, told
from headrace.connect.postgres.lsn import lsn_of, lsn_text
from headrace.connect.postgres.pgoutput import Column
from headrace.connect.postgres.progress import Progress

if TYPE_CHECKING:
    from psycopg import Connection

_COLUMN_LISTS: Final = 150000
"""Publications have lists of columns and filters of rows since this version."""
_SCHEMAS: Final = 150000
"""And whole schemas."""


class KeyColumn(NamedTuple):
    name: str
    type_name: str
    """Without its length: a cast to varchar(5) cuts a longer text, which is another key."""
    collation: str | None
    """Quoted; None: the type's own."""


@dataclass(frozen=True)
class Table:
    name: str
    """With its schema."""
    columns: tuple[Column, ...]
    key: tuple[KeyColumn, ...]
    """In the order of its index."""
    row_filter: str | None
    partitioned: bool = False

    @property
    def source(self) -> str:
        """For `statement`. Rows of tables that inherit from this one are those of other tables."""
        return quoted_table(self.name) if self.partitioned else f"ONLY {quoted_table(self.name)}"


class Slot(NamedTuple):
    confirmed: int
    lost: bool
    active_pid: int | None


def system_of(connection: Connection[Any]) -> str:
    with told("say which cluster it is (pg_control_system)"):
        return str(rows(connection, "SELECT system_identifier FROM pg_control_system()")[0][0])


def check_server(connection: Connection[Any]) -> None:
    (level,) = rows(connection, "SHOW wal_level")[0]
    if level != "logical":
        raise GiveUp(
            f"Postgres' wal_level is {level}, and changes are captured with logical: set wal_level = logical "
            "in postgresql.conf and start Postgres anew"
        )


def slot_of(connection: Connection[Any], slot: str) -> Slot | None:
    found = rows(
        connection,
        "SELECT plugin, database = current_database(), confirmed_flush_lsn::text, "
        "coalesce(wal_status, '') = 'lost', active_pid FROM pg_replication_slots WHERE slot_name = %s",
        [slot],
    )
    if not found:
        return None
    plugin, ours, confirmed, lost, pid = found[0]
    if plugin != "pgoutput" or not ours:
        raise GiveUp(
            f"replication slot {slot} belongs to another database or has plugin {plugin}, not pgoutput: give "
            "this connector a slot.name of its own"
        )
    return Slot(lsn_of(confirmed), bool(lost), pid)


def make_slot(connection: Connection[Any], slot: str) -> Slot:
    """Waits for the transactions that are running."""
    with told(
        f"make replication slot {slot} (its user needs the attribute REPLICATION, and max_replication_slots "
        "a free one; or make it yourself: SELECT pg_create_logical_replication_slot(NAME, 'pgoutput'))"
    ):
        rows(connection, "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [slot])
    found = slot_of(connection, slot)
    if found is None:
        raise ConnectorFailure(f"replication slot {slot} vanished as soon as it was made: was it dropped?")
    return found


def check_slot(slot: str, found: Slot | None, progress: Progress) -> None:
    """A capture that has begun goes on where it was, or says that it cannot."""
    again = (
        "The changes since then cannot be had any more. To begin anew with a copy of all tables: stop the "
        "connector, DELETE its offsets, drop the slot if it is there, and resume. Rows that were deleted "
        "meanwhile stay in the topics then, unless you write to another topic.prefix"
    )
    place = lsn_text(progress.lsn)
    if found is None:
        raise GiveUp(f"replication slot {slot} is gone: somebody dropped it after {place}. {again}")
    if found.lost:
        raise GiveUp(
            f"replication slot {slot} is lost at {place}: Postgres removed the log that it needed, because "
            f"it held more than max_slot_wal_keep_size. {again}"
        )
    if found.confirmed > progress.lsn:
        raise GiveUp(
            f"replication slot {slot} stands at {lsn_text(found.confirmed)}, and this connector only came to "
            f"{place}: somebody else reads from the slot, it was made anew, or the connector's offsets are "
            f"old. {again}"
        )


def ensure_publication(
    connection: Connection[Any], publication: str, tables: Sequence[str], create: bool
) -> dict[str, Table]:
    """The tables that are captured."""
    exists = bool(rows(connection, "SELECT 1 FROM pg_publication WHERE pubname = %s", [publication]))
    published = _published(connection, publication) if exists else {}
    absent = [each for each in tables if each not in published]
    wish = _wish(publication, exists, absent)
    if wish is not None:
        _check_identities(connection, absent)
        if not create:
            raise GiveUp(
                f"publication {publication} "
                + (f"does not have {', '.join(absent)}" if exists else "does not exist")
                + f": run {wish}, or set publication.autocreate.mode=filtered"
            )
        with told(f"run {wish} (its user has to own the tables)"):
            connection.execute(*statement(wish))
        published = _published(connection, publication)
    elif not exists:
        raise GiveUp(
            f"publication {publication} does not exist, and table.include.list names no table to make it for"
        )
    _check_kinds(connection, publication)
    return _tables(connection, published, tables or sorted(published))


def published_tables(
    connection: Connection[Any], publication: str, tables: Sequence[str]
) -> dict[str, Table]:
    """As they are now."""
    return _tables(connection, _published(connection, publication), tables)


def identities(connection: Connection[Any], publication: str) -> dict[str, str]:
    """Of the tables that a publication has. Another identity under the same name is another table, or one
    that the publication did not have for a while."""
    in_schemas = connection.info.server_version >= _SCHEMAS
    schema = "(SELECT oid FROM pg_publication_namespace WHERE pnpubid = p.oid AND pnnspid = n.oid)"
    query = (
        "SELECT n.nspname || '.' || c.relname, concat_ws('/', p.oid, c.oid, coalesce(r.oid, "
        f"{schema if in_schemas else 'NULL'})) FROM pg_publication p "
        "JOIN pg_publication_tables t ON t.pubname = p.pubname "
        "JOIN pg_namespace n ON n.nspname = t.schemaname "
        "JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename "
        "LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid WHERE p.pubname = %s"
    )
    with told(f"say which tables publication {publication} has"):
        return dict(rows(connection, query, [publication]))


def check_identities(
    publication: str, tables: Sequence[str], found: Mapping[str, str], progress: Progress
) -> None:
    """Changes of a table that the publication did not have are in no stream. Without names of tables, one
    that it does not have any more is not wanted."""
    for table, known in sorted(progress.identities.items()):
        if table in (tables or found) and table in progress.copied and found.get(table) != known:
            raise GiveUp(
                f"table {table} is not the one that was captured up to {lsn_text(progress.lsn)}: it was "
                f"dropped, renamed or made anew, or publication {publication} did not have it for a while, "
                "and changes of it were missed. To go on with a copy of it: stop the connector, PATCH its "
                f"offset without {table} in `copied`, and resume. Rows that were deleted meanwhile stay in "
                "the topic then. To go on without it, take it out of table.include.list"
            )


def _tables(
    connection: Connection[Any],
    published: Mapping[str, tuple[list[str] | None, str | None]],
    wanted: Sequence[str],
) -> dict[str, Table]:
    return {each: _table(connection, each, *published[each]) for each in wanted if each in published}


def _wish(publication: str, exists: bool, absent: Sequence[str]) -> str | None:
    if not absent:
        return None
    listed = ", ".join(quoted_table(each) for each in absent)
    if exists:
        return f"ALTER PUBLICATION {quoted(publication)} ADD TABLE {listed}"
    return (
        f"CREATE PUBLICATION {quoted(publication)} FOR TABLE {listed} "
        "WITH (publish_via_partition_root = true)"
    )


def _published(
    connection: Connection[Any], publication: str
) -> dict[str, tuple[list[str] | None, str | None]]:
    more = "attnames::text[], rowfilter" if _has_lists(connection) else "NULL, NULL"
    query = f"SELECT schemaname, tablename, {more} FROM pg_publication_tables WHERE pubname = %s"
    return {f"{s}.{t}": (columns, where) for s, t, columns, where in rows(connection, query, [publication])}


def _has_lists(connection: Connection[Any]) -> bool:
    return connection.info.server_version >= _COLUMN_LISTS


def _check_kinds(connection: Connection[Any], publication: str) -> None:
    found = rows(
        connection,
        "SELECT pubinsert AND pubupdate AND pubdelete FROM pg_publication WHERE pubname = %s",
        [publication],
    )
    if not found or not found[0][0]:
        raise GiveUp(
            f"publication {publication} leaves out inserts, updates or deletes: run ALTER PUBLICATION "
            f"{quoted(publication)} SET (publish = 'insert, update, delete, truncate')"
        )


def _check_identities(connection: Connection[Any], tables: Sequence[str]) -> None:
    """Before a table is published: from then on Postgres refuses updates and deletes of a table without a
    replica identity, to the programs that use it."""
    for each in tables:
        _key(connection, each)


def _table(connection: Connection[Any], name: str, listed: list[str] | None, row_filter: str | None) -> Table:
    key = _key(connection, name)
    (kind,) = rows(
        connection, "SELECT relkind = 'p' FROM pg_class WHERE oid = %s::regclass", [quoted_table(name)]
    )[0]
    return Table(name, _columns(connection, name, key, listed), key, row_filter, kind)


def table_of(connection: Connection[Any], name: str) -> Table:
    """A table that no publication has to have."""
    key = primary_key(connection, name)
    return Table(name, _columns(connection, name, key, None), key, None)


def _columns(
    connection: Connection[Any], name: str, key: Sequence[KeyColumn], listed: list[str] | None
) -> tuple[Column, ...]:
    names = {column.name for column in key}
    found = rows(
        connection,
        "SELECT attname::text, atttypid::bigint FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > "
        "0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        [quoted_table(name)],
    )
    return tuple(Column(c, oid, c in names) for c, oid in found if listed is None or c in listed)


def _key(connection: Connection[Any], table: str) -> tuple[KeyColumn, ...]:
    found = rows(
        connection,
        "SELECT relreplident::text FROM pg_class WHERE oid = to_regclass(%s)",
        [quoted_table(table)],
    )
    if not found:
        raise GiveUp(f"table {table} does not exist: table.include.list names tables as schema.table")
    index = {"d": "indisprimary", "f": "indisprimary", "i": "indisreplident"}.get(found[0][0])
    if index is None:
        raise GiveUp(
            f"table {table} has REPLICA IDENTITY NOTHING, so its deletes do not say what was deleted: run "
            f"ALTER TABLE {quoted_table(table)} REPLICA IDENTITY DEFAULT"
        )
    key = _columns_of_index(connection, table, index)
    if not key:
        raise GiveUp(
            f"table {table} has no primary key, so nobody can tell which row a change belongs to: add one, "
            "or name a unique index over columns that are not null with ALTER TABLE ... REPLICA IDENTITY "
            "USING INDEX ..., or take the table out of table.include.list"
        )
    return key


def primary_key(connection: Connection[Any], table: str) -> tuple[KeyColumn, ...]:
    """Of a table that is written to."""
    if not rows(connection, "SELECT to_regclass(%s) IS NOT NULL", [quoted_table(table)])[0][0]:
        raise GiveUp(f"table {table} does not exist: make it, with a primary key")
    key = _columns_of_index(connection, table, "indisprimary")
    if not key:
        raise GiveUp(f"table {table} has no primary key, by which records replace rows: add one")
    return key


def _columns_of_index(connection: Connection[Any], table: str, index: str) -> tuple[KeyColumn, ...]:
    query = (
        "SELECT a.attname::text, format_type(a.atttypid, -1), CASE WHEN a.attcollation NOT IN "
        "(0, (SELECT typcollation FROM pg_type WHERE oid = a.atttypid)) THEN "
        "(SELECT quote_ident(n.nspname) || '.' || quote_ident(c.collname) FROM pg_collation c "
        "JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = a.attcollation) END "
        "FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS k(number, place), pg_attribute a "
        f"WHERE i.indrelid = %s::regclass AND i.{index} AND k.place <= i.indnkeyatts "
        "AND a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place"
    )
    return tuple(KeyColumn(*each) for each in rows(connection, query, [quoted_table(table)]))


def keys_of(tables: Mapping[str, Table]) -> dict[str, list[str]]:
    return {name: [column.name for column in table.key] for name, table in tables.items()}
