"""pgoutput's messages, as Postgres' documentation lays them out. Real ones: tests/postgres."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.postgres.pgoutput import (
    UNCHANGED,
    BadMessage,
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    Relation,
    Truncate,
    Update,
    decode,
)

_RELATION = b"R" + struct.pack(">I", 7) + b"public\0orders\0d" + struct.pack(">h", 2)
_RELATION += b"\1id\0" + struct.pack(">Ii", 23, -1) + b"\0v\0" + struct.pack(">Ii", 25, -1)


def _values(*values: str | object | None) -> bytes:
    parts = [struct.pack(">h", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, str):
            data = value.encode()
            parts.append(b"t" + struct.pack(">i", len(data)) + data)
        else:
            parts.append(b"u")
    return b"".join(parts)


def _row(kind: bytes, *pieces: bytes) -> bytes:
    return kind + struct.pack(">I", 7) + b"".join(pieces)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"B" + struct.pack(">QqI", 99, 1_000_000, 4), Begin(99, 946_684_801_000, 4)),
        (b"C" + struct.pack(">bQQq", 0, 99, 120, 5), Commit(99, 120)),
        (_RELATION, Relation(7, "public", "orders", "d", (Column("id", 23, True), Column("v", 25, False)))),
        (_row(b"I", b"N", _values("1", None)), Insert(7, ["1", None])),
        (_row(b"U", b"N", _values("1", UNCHANGED)), Update(7, None, False, ["1", UNCHANGED])),
        (
            _row(b"U", b"K", _values("1", None), b"N", _values("2", "ä")),
            Update(7, ["1", None], False, ["2", "ä"]),
        ),
        (
            _row(b"U", b"O", _values("1", "b"), b"N", _values("1", "c")),
            Update(7, ["1", "b"], True, ["1", "c"]),
        ),
        (_row(b"D", b"K", _values("1", None)), Delete(7, ["1", None], False)),
        (_row(b"D", b"O", _values("1", "c")), Delete(7, ["1", "c"], True)),
        (b"T" + struct.pack(">ibII", 2, 0, 7, 8), Truncate((7, 8))),
        (b"O" + struct.pack(">Q", 1) + b"elsewhere\0", None),
        (b"Y" + struct.pack(">I", 1) + b"public\0mood\0", None),
        (b"M" + struct.pack(">bQ", 1, 1) + b"headrace\0" + struct.pack(">i", 0), None),
    ],
)
def test_each_kind(data: bytes, message: object) -> None:
    assert decode(data) == message


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_in_words(data: bytes) -> None:
    with contextlib.suppress(BadMessage):
        decode(data)


def test_a_value_that_reaches_too_far() -> None:
    with pytest.raises(BadMessage):
        decode(_row(b"I", b"N", struct.pack(">h", 1), b"t", struct.pack(">i", 10), b"short"))
