"""What Postgres' plugin `pgoutput` writes, protocol version 1: bytes in, messages out. Nothing here asks a
database.

Of Postgres' documentation, "Logical Replication Message Formats". Streamed and prepared transactions are not
asked for, so they do not come.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct, error
from typing import Final, NamedTuple

from headrace.core.errors import HeadraceError

_BEGIN: Final = Struct(">QqI")
_COMMIT: Final = Struct(">bQQq")
_OID: Final = Struct(">I")
_COUNT: Final = Struct(">h")
_LENGTH: Final = Struct(">i")
_COLUMN: Final = Struct(">Ii")
_TRUNCATE: Final = Struct(">ib")
_EPOCH_MS: Final = 946_684_800_000
"""Postgres counts from the year 2000."""


class BadMessage(HeadraceError):
    """Bytes that pgoutput does not write."""


class Unchanged(Enum):
    """A value that is stored apart (TOAST) and was not touched: Postgres does not send it."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
Value = str | None | Unchanged
"""As Postgres' own text; None is NULL."""
Tuple = list[Value]


class Begin(NamedTuple):
    commit_lsn: int
    """Where the transaction's commit stands: transactions come in this order."""
    committed_ms: int
    xid: int
    """32 bits of it."""


class Commit(NamedTuple):
    commit_lsn: int
    end_lsn: int
    """Behind the commit."""


class Column(NamedTuple):
    name: str
    type_oid: int
    is_key: bool
    """Of the replica identity."""


class Relation(NamedTuple):
    oid: int
    schema: str
    name: str
    identity: str
    """d: the primary key, i: an index, f: the whole row, n: nothing."""
    columns: tuple[Column, ...]

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


class Insert(NamedTuple):
    oid: int
    new: Tuple


class Update(NamedTuple):
    oid: int
    old: Tuple | None
    """None: the key is what it was."""
    old_is_whole: bool
    """Else only the columns of the key are there, and the others are None."""
    new: Tuple


class Delete(NamedTuple):
    oid: int
    old: Tuple
    old_is_whole: bool


class Truncate(NamedTuple):
    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate


def decode(data: bytes) -> Message | None:
    """None for what says nothing of rows: where a change came from, names of types, messages of programs."""
    try:
        return _decode(data)
    except (error, IndexError, ValueError) as found:
        raise BadMessage(f"a message of pgoutput cannot be read ({found!r}): {data[:60].hex()}") from None


def _decode(data: bytes) -> Message | None:
    kind = data[0]
    if kind == 73:  # I
        new, _ = _tuple(data, 6)
        return Insert(_OID.unpack_from(data, 1)[0], new)
    if kind == 85:  # U
        return _update(data)
    if kind == 68:  # D
        old, _ = _tuple(data, 6)
        return Delete(_OID.unpack_from(data, 1)[0], old, data[5] == 79)
    if kind == 66:  # B
        lsn, micros, xid = _BEGIN.unpack_from(data, 1)
        return Begin(lsn, micros // 1000 + _EPOCH_MS, xid)
    if kind == 67:  # C
        _, lsn, end, _ = _COMMIT.unpack_from(data, 1)
        return Commit(lsn, end)
    if kind == 82:  # R
        return _relation(data)
    if kind == 84:  # T
        count, _ = _TRUNCATE.unpack_from(data, 1)
        return Truncate(tuple(_OID.unpack_from(data, 6 + 4 * each)[0] for each in range(count)))
    if kind in b"OYM":
        return None
    raise ValueError(f"kind {chr(kind)!r} is not known")


def _update(data: bytes) -> Update:
    old, whole, at = None, False, 5
    if data[at] != 78:  # N
        whole = data[at] == 79  # O, else K
        old, at = _tuple(data, at + 1)
    new, _ = _tuple(data, at + 1)
    return Update(_OID.unpack_from(data, 1)[0], old, whole, new)


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    values: Tuple = []
    append, length_at = values.append, _LENGTH.unpack_from
    for _ in range(count):
        kind = data[at]
        if kind == 116:  # t
            (length,) = length_at(data, at + 1)
            end = at + 5 + length
            if length < 0 or end > len(data):
                raise ValueError("a value reaches behind the message")
            append(data[at + 5 : end].decode())
            at = end
        elif kind == 110:  # n
            append(None)
            at += 1
        elif kind == 117:  # u
            append(UNCHANGED)
            at += 1
        else:
            raise ValueError(f"a value of kind {chr(kind)!r}")
    return values, at


def _relation(data: bytes) -> Relation:
    (oid,) = _OID.unpack_from(data, 1)
    schema, at = _text(data, 5)
    name, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _text(data, at + 1)
        type_oid, _ = _COLUMN.unpack_from(data, at)
        at += 8
        columns.append(Column(column, type_oid, bool(flags & 1)))
    # An empty name of a schema is the one of the system's own tables.
    return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
