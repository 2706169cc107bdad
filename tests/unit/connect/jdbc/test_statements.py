"""Queries for new rows, asked of SQLite, which understands the part of SQL that they are made of."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.api import GiveUp
from headrace.connect.jdbc.statements import Kind, Rising, bound_query, literal, rows_query, types_query

BOTH = Rising("at", "id")
KINDS = {"at": Kind.TEXT, "id": Kind.NUMBER}


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b'", "c", None]), st.integers(-3, 9)), max_size=15, unique=True
    ),
    st.integers(1, 4),
)
def test_step_by_step_each_row_comes_once_in_the_order_of_its_columns(
    rows: list[tuple[str | None, int]], most: int
) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE t (at TEXT, id INTEGER)")
        db.executemany("INSERT INTO t VALUES (?, ?)", rows)
        after, read = None, []
        for _ in range(20):
            found = db.execute(bound_query("t", BOTH, KINDS, after)).fetchmany(most)
            if not found:
                break
            to = tuple(str(each) for each in found[-1])
            step = db.execute(rows_query("t", BOTH, KINDS, after, to)).fetchall()
            assert sorted(step) == found
            read += sorted(step)
            after = to
    assert read == sorted(each for each in rows if each[0] is not None)


def test_times_are_in_the_words_of_jdbc() -> None:
    rising = Rising("at", "", 1500)
    query = bound_query("s.t", rising, {"at": Kind.TIME}, ("2026-03-01 10:00:00.5",))
    assert "at > {ts '2026-03-01 10:00:00.5'}" in query
    assert "at < {fn TIMESTAMPADD(SQL_TSI_SECOND, -2, CURRENT_TIMESTAMP)}" in query
    assert types_query("s.t", rising) == "SELECT at FROM s.t WHERE 1 = 0"
    assert literal(Kind.DATE, "2026-03-01") == "{d '2026-03-01'}"


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Kind.NUMBER, "1 OR 1=1"), (Kind.TIME, "'}; DROP"), (Kind.DATE, "yesterday"), (Kind.NUMBER, "")],
)
def test_an_offset_of_another_kind_is_told(kind: Kind, value: str) -> None:
    with pytest.raises(GiveUp, match=f"the connector's offset has {re.escape(repr(value))}, where"):
        literal(kind, value)


def test_kinds_are_those_of_jdbc() -> None:
    assert [Kind.of(each) for each in (-5, 2, 3, 4, 91, 93, 2014, 12, 1111)] == [
        *[Kind.NUMBER] * 4, Kind.DATE, Kind.TIME, Kind.TIME, Kind.TEXT, Kind.TEXT,
    ]  # fmt: skip
