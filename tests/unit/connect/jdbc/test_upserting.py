"""From records to rows, by statements that SQLite runs as well; a dictionary says what the table is."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.api import ConnectorFailure, GiveUp, SinkRecord
from headrace.connect.jdbc.columns import Column, Form
from headrace.connect.jdbc.dialects import Dialect, dialect_of
from headrace.connect.jdbc.folding import Plan, Read, Staged, culprits, fold, read
from headrace.connect.jdbc.progress import is_there
from headrace.connect.jdbc.upserting import Piece, Target, Upserting
from headrace.core.ids import TopicPartition

COLUMNS = (
    Column("id", Form.WHOLE),
    Column('a"b', Form.TEXT, size=20),
    Column("n", Form.WHOLE),
)
TARGET = Target("t", '"t"', COLUMNS, ("id",))
PLAN = Plan(TARGET, frozenset(), by_key=True, deletes=True, dead=frozenset(), whole=True)
STANDARD = Dialect('"')

_value = st.one_of(st.none(), st.integers(0, 9))
_row = st.one_of(
    st.none(), st.fixed_dictionaries({}, optional={'a"b': st.one_of(st.none(), st.text("xy")), "n": _value})
)


def _record(offset: int, key: object, value: object, partition: int = 0) -> SinkRecord:
    def encoded(each: object) -> bytes | None:
        return None if each is None else json.dumps(each).encode()

    return SinkRecord("t", partition, offset, encoded(key), encoded(value), (), 0)


def _read(plan: Plan, records: Sequence[SinkRecord]) -> list[Read]:
    """In the order in which a task has them."""
    found = [each for record in records if (each := read(plan, record)) is not None]
    return sorted(found, key=lambda each: (each.key, each.offset))


def _stage(db: sqlite3.Connection, sql: Upserting, rows: Iterator[Staged]) -> None:
    db.execute(sql.create())
    for number, each in enumerate(rows):
        values = (number, *each[:-1], *each.values)
        db.execute(f"INSERT INTO s VALUES ({', '.join('?' * len(values))})", values)


def _apply(db: sqlite3.Connection, sql: Upserting, piece: Piece) -> None:
    db.execute(sql.delete(piece))
    for (shape,) in db.execute(sql.shapes()).fetchall():
        if (update := sql.update(shape, piece)) is not None:
            db.execute(update)
        db.execute(sql.insert(shape, piece))


@given(st.lists(st.tuples(st.integers(0, 3), _row), max_size=12), st.integers(0, 12), st.booleans())
def test_the_table_is_what_the_records_say(
    given_records: list[tuple[int, dict[str, object] | None]], cut: int, whole: bool
) -> None:
    """In two batches, folded, or step by step."""
    rows: dict[int, dict[str, object]] = {}
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute('CREATE TABLE "t" (id INTEGER PRIMARY KEY, "a""b" TEXT DEFAULT \'none\', n INTEGER)')
        records = [_record(at, {"id": key}, row) for at, (key, row) in enumerate(given_records)]
        for batch in (records[:cut], records[cut:]):
            sql = Upserting(STANDARD, TARGET, "s")
            _stage(db, sql, fold(PLAN._replace(whole=whole), _read(PLAN, batch)))
            (last,) = db.execute(sql.steps()).fetchone()
            for step in range((last or 0) + 1):
                _apply(db, sql, Piece(step))
            assert db.execute(sql.doubled()).fetchone()[0] <= len(batch)
            db.execute(sql.drop())
        for key, row in given_records:
            if row is None:
                rows.pop(key, None)
            else:
                rows[key] = {**rows.get(key, {'a"b': "none", "n": None}), **row}
        expected = [(key, row['a"b'], row["n"]) for key, row in sorted(rows.items())]
        assert db.execute('SELECT * FROM "t" ORDER BY id').fetchall() == expected


def test_keys_are_compared_as_the_column_has_them() -> None:
    records = [_record(0, {"id": 1}, {"n": 1}), _record(1, {"id": "1.0"}, {"n": 2})]
    (only,) = fold(PLAN, _read(PLAN, records))
    assert only.values == ("1", None, "2")


def test_what_is_no_row_has_a_reason_and_what_is_dead_is_passed_over() -> None:
    records = [
        _record(0, {"id": 1}, {"n": "x"}),
        _record(1, {"id": 1}, {"strange\ud800\x00": 1}),
        _record(2, {"id": 1}, {"n": 1}),
        _record(3, {"id": 2}, None),
    ]
    dead = PLAN._replace(dead=frozenset({("t", 0, 2)}), deletes=False)
    found = list(fold(dead, _read(dead, records)))
    assert [(each.kind, each.offset) for each in found] == [("x", 0), ("x", 1)]
    assert found[0].reason == "n is a whole number, and 'x' is none"
    assert found[1].reason == "the table has no column strange\\ud800\\x00"


def test_rows_that_are_only_added_have_no_key() -> None:
    plan = PLAN._replace(by_key=False, deletes=False, whole=False, target=TARGET._replace(keys=()))
    records = [_record(0, None, {"id": 1}), _record(1, None, {"id": 1}), _record(2, None, None)]
    assert [(each.step, each.offset) for each in fold(plan, _read(plan, records))] == [(0, 0), (0, 1)]
    sql = Upserting(STANDARD, plan.target, "s")
    assert sql.index() is None
    assert "EXISTS" not in sql.insert("100", Piece(), unless_there=False)


@pytest.mark.parametrize(("whole", "steps"), [(True, [0, 0, 0]), (False, [0, 1, 0])])
def test_of_rows_with_the_same_key_the_first_is_added_first(steps: list[int], *, whole: bool) -> None:
    plan = PLAN._replace(by_key=False, deletes=False, whole=whole)
    records = [_record(0, {"id": 1}, {}), _record(1, {"id": 1}, {}), _record(2, {"id": 2}, {})]
    found = list(fold(plan, _read(plan, records)))
    assert [(each.step, each.kind, each.offset) for each in found] == [
        (step, "u", offset) for offset, step in enumerate(steps)
    ]


@given(st.sets(st.integers(0, 400), max_size=60), st.data())
def test_the_rows_to_blame_are_found_and_the_others_stay(numbers: set[int], data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.sampled_from(sorted(numbers)), max_size=5)) if numbers else set()
    kept: list[int] = []

    def within(first: int, last: int) -> list[int]:
        return [each for each in sorted(numbers) if first <= each <= last]

    def span(first: int, last: int) -> tuple[int, int, int]:
        found = within(first, last)
        return (found[0], found[-1], len(found)) if found else (0, 0, 0)

    def attempt(first: int, last: int) -> str | None:
        if bad.intersection(within(first, last)):
            return "no"
        kept.extend(within(first, last))
        return None

    assert list(culprits(span, attempt, 0, 2**63 - 1)) == [(each, "no") for each in sorted(bad)]
    assert kept == sorted(numbers - bad), "in their order, each once"


def test_databases_differ() -> None:
    postgres = dialect_of("PostgreSQL", '"')
    maria = dialect_of("MariaDB", "`")
    json_column = Column("doc", Form.OWN, "jsonb")
    target = Target("t", '"t"', (*COLUMNS, json_column), ("id",))
    assert Upserting(postgres, target, "s").update("1001", Piece(2, 3, 4)) == (
        'UPDATE "t" AS t SET "doc" = CAST(s."c3" AS jsonb) FROM "s" s WHERE t."id" = s."c0" AND '
        's."hr_step" = 2 AND s."hr_n" BETWEEN 3 AND 4 AND s."hr_shape" = \'1001\' AND '
        "s.\"hr_kind\" IN ('u', 'r')"
    )
    deletes = [Upserting(each, target, "s").delete(Piece()) for each in (postgres, maria)]
    assert deletes[0].startswith('DELETE FROM "t" AS t USING "s" s WHERE t."id" = s."c0" AND ')
    assert deletes[1].startswith('DELETE t FROM "t" AS t JOIN `s` s ON t.`id` = s.`c0` AND ')
    update = Upserting(maria, target, "s").update("1010", Piece()) or ""
    assert update.startswith('UPDATE "t" AS t JOIN `s` s ON t.`id` = s.`c0` AND ')
    assert update.endswith(" SET t.`n` = s.`c2`")
    assert Upserting(maria, target, "s").update("1000", Piece()) is None
    assert maria.staged_type(Column("c", Form.TEXT, size=0)) == "LONGTEXT"
    assert maria.staged_type(Column("c", Form.TEXT, size=9)) == "VARCHAR(9)"
    short = Column("c", Form.TEXT, size=9)
    assert (STANDARD.staged_type(short), STANDARD.cast(short, "s.c")) == ("CLOB", "CAST(s.c AS VARCHAR(9))")
    assert STANDARD.staged_type(short, is_key=True) == "VARCHAR(9)"
    assert STANDARD.cast(short, "s.c", is_key=True) == "s.c"
    assert STANDARD.cast(Column("c", Form.DATE), "s.c") == "CAST(CAST(s.c AS VARCHAR(40)) AS DATE)"
    assert maria.cast(Column("c", Form.TIMESTAMP), "s.c") == "CAST(s.c AS DATETIME(6))"
    assert maria.quoted("a`b") == "`a``b`"
    assert (maria.is_fault("HY000", 1364), postgres.is_fault("HY000", 1364)) == (True, False)
    assert postgres.is_fault("23505", 0)
    assert not postgres.is_fault("40001", 0)
    with pytest.raises(GiveUp, match="has no quotes for names"):
        Dialect(" ").quoted("a b")


def test_a_batch_is_there_whole_or_not_at_all() -> None:
    one, two = TopicPartition("t", 0), TopicPartition("t", 1)
    ranges = {one: (5, 9), two: (0, 3)}
    assert not is_there(ranges, {})
    assert not is_there(ranges, {one: 5})
    assert is_there(ranges, {one: 9, two: 3})
    with pytest.raises(ConnectorFailure, match="and not the rest of it"):
        is_there(ranges, {one: 9, two: 0})
    with pytest.raises(ConnectorFailure, match="up to 7, and this batch goes from 5 to 9"):
        is_there(ranges, {one: 7, two: 0})


def test_numbers_that_postgres_makes_itself_are_those_of_the_records() -> None:
    sql = Upserting(dialect_of("PostgreSQL", '"'), TARGET, "s")
    assert sql.insert("101", Piece()).startswith(
        'INSERT INTO "t" ("id", "n") OVERRIDING SYSTEM VALUE SELECT '
    )
