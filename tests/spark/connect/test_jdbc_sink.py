"""Rows of a database by its JDBC driver, each record counted once: Derby, whose jar comes with Spark, in a
session that other tests use too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.core.ids import TopicPartition
from headrace.spark.connect import jdbc_table
from headrace.spark.connect.jdbc_table import StagedTable
from tests.spark.connect.jdbc_sinks import Derby, Given, GivenBatch, sink_of

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[Derby]:
    made = Derby(spark, tmp_path)
    yield made
    made.close()


def _tables(derby: Derby) -> list[str | None]:
    return [name for (name,) in derby.rows("SELECT TABLENAME FROM SYS.SYSTABLES WHERE TABLENAME LIKE 'hr%'")]


def test_rows_are_replaced_completed_and_deleted_by_key(spark: SparkSession, derby: Derby) -> None:
    derby.run(
        "CREATE TABLE orders (id INT PRIMARY KEY, price DECIMAL(9,2), note VARCHAR(20) DEFAULT 'none', "
        '"at" TIMESTAMP, "day" DATE, paid BOOLEAN, long CLOB, raw BLOB)'
    )
    derby.run("INSERT INTO orders (id, price, note) VALUES (1, 1, 'old'), (2, 2, 'old'), (3, 3, 'old')")
    sink = sink_of(derby.url)
    assert sink.position() == {}
    row = {"price": "9.995", "at": "2026-03-29T02:30:00.25+02:00", "day": 20541, "paid": True, "raw": "AQI="}
    sink.write(
        GivenBatch(
            spark,
            [
                Given(10, {"id": 1}, {"id": 1, "price": 5}),
                Given(11, {"id": 2}, {"note": "gone"}),
                Given(12, {"id": 3}, {"note": "a"}),
                Given(13, {"id": 1}, {"note": "new"}),
                Given(14, {"id": 2}, None),
                Given(15, {"id": 3}, None),
                Given(16, {"id": 3}, {"price": 7}),
                Given(18, {"id": 4}, {**row, "long": "x" * 40_000}),
                Given(19, {"id": 5}, None),
                Given(3, {"id": 6}, {"op": "c", "before": None, "after": {"id": 6, "price": None}}, 1),
            ],
        )
    )
    found = derby.rows("SELECT id, price, note FROM orders ORDER BY id")
    assert found == [
        *(("1", "5.00", "new"), ("3", "7.00", "none")),
        *(("4", "10.00", "none"), ("6", None, "none")),
    ]
    of_four = 'SELECT "at", "day", paid, LENGTH(long), LENGTH(raw) FROM orders WHERE id = 4'
    assert derby.rows(of_four) == [("2026-03-29 00:30:00.25", "2026-03-29", "true", "40000", "2")]
    assert sink.position() == {ORDERS: 20, TopicPartition("orders", 1): 4}
    sink.stop()
    assert _tables(derby) == [], "what was staged has gone"


def test_a_batch_that_comes_again_changes_nothing_and_a_zombie_neither(
    spark: SparkSession, derby: Derby
) -> None:
    derby.run("CREATE TABLE orders (id INT PRIMARY KEY, v INT)", "CREATE TABLE seen (v INT)")
    derby.run(
        "CREATE TRIGGER noted AFTER INSERT ON orders REFERENCING NEW AS row FOR EACH ROW "
        "INSERT INTO seen VALUES (row.v)"
    )
    first = GivenBatch(spark, [Given(n, {"id": n}, {"v": n}) for n in range(3)])
    second = GivenBatch(spark, [Given(n, {"id": n}, {"v": n}) for n in range(3, 6)])
    asleep = sink_of(derby.url)
    assert asleep.position() == {}
    asleep.write(first)
    derby.run("UPDATE orders SET v = -1 WHERE id = 0")
    asleep.write(first)
    assert derby.rows("SELECT v FROM orders ORDER BY id") == [("-1",), ("1",), ("2",)]

    awake = sink_of(derby.url)
    assert awake.position() == {ORDERS: 3}
    awake.write(second)
    third = GivenBatch(spark, [Given(6, {"id": 6}, {"v": 6})])
    for batch in (third, second):
        if batch is third:
            with pytest.raises(ConnectorFailure, match="another worker has written as connector rows"):
                asleep.write(batch)
        else:
            asleep.write(batch)
    assert [v for (v,) in derby.rows("SELECT v FROM seen ORDER BY v")] == [str(n) for n in range(6)]
    awake.write(third)
    with pytest.raises(ConnectorFailure, match=r"has orders-0 up to 7, and this batch goes from 8"):
        awake.write(GivenBatch(spark, [Given(8, {"id": 8}, {"v": 8})]))

    hand = sink_of(derby.url)
    hand.alter_position({ORDERS: 2})
    with pytest.raises(ConnectorFailure, match="up to 2, and this batch goes from 7"):
        awake.write(GivenBatch(spark, [Given(7, {"id": 7}, {"v": 7})]))
    with pytest.raises(ConnectorFailure, match="another worker has written"):
        awake.write(GivenBatch(spark, [Given(2, {"id": 2}, {"v": 20})]))
    hand.alter_position({ORDERS: None})
    assert hand.position() == {}
    with pytest.raises(ConnectorFailure, match="another worker has written"):
        awake.write(GivenBatch(spark, [Given(7, {"id": 7}, {"v": 7})]))
    assert derby.rows("SELECT COUNT(*), MAX(v) FROM orders") == [("7", "6")]
    for sink in (asleep, awake, hand):
        sink.stop()


@pytest.mark.parametrize("tolerant", [False, True])
def test_records_that_do_not_fit(spark: SparkSession, derby: Derby, *, tolerant: bool) -> None:
    """By what the sink knows, and by what only the database does: each with its reason, the rest is there."""
    derby.run("CREATE TABLE orders (id INT PRIMARY KEY, v INT NOT NULL CHECK (v < 100), note VARCHAR(5))")
    batch = GivenBatch(
        spark,
        [
            Given(0, {"id": 1}, {"v": 1}),
            Given(1, {"id": 2}, {"v": "x"}),
            Given(2, {"id": 3}, b"no json"),
            Given(3, None, {"v": 3}),
            Given(4, {"id": 5}, {"v": 5, "other": 1}),
            Given(5, {"id": 6}, {"v": 6, "note": "too long"}),
            Given(6, {"id": 7}, {"v": 7}),
            Given(7, {"id": 7}, {"v": 700}),
            Given(8, {"id": 7}, {"note": "good"}),
            Given(9, {"id": 8}, {"note": "no v"}),
            Given(10, {"id": 9}, {"v": 2**31}),
            Given(11, {"id": 10}, {"v": 10}),
        ],
        tolerant=tolerant,
    )
    sink = sink_of(derby.url)
    sink.position()
    if not tolerant:
        with pytest.raises(GiveUp, match="V is a whole number, and 'x' is none"):
            sink.write(batch)
        assert derby.rows("SELECT * FROM orders") == []
        assert sink.position() == {}, "it is not passed over"
    else:
        sink.write(batch)
        reasons = {each.offset: each.reason for each in batch.letters}
        assert sorted(reasons) == [1, 2, 3, 4, 5, 7, 9, 10]
        assert reasons[2] == "the value is no JSON"
        assert reasons[3] == "neither the record's key nor its value has ID, the table's key"
        assert reasons[4] == "the table has no column other"
        assert reasons[5] == "NOTE takes 5 characters, and the value has 8"
        assert "check constraint" in reasons[7]
        assert "cannot accept a NULL" in reasons[9]
        assert "outside the range" in reasons[10]
        kept = [("1", "1", None), ("7", "7", "good"), ("10", "10", None)]
        assert derby.rows("SELECT id, v, note FROM orders ORDER BY id") == kept
        assert sink.position() == {ORDERS: 12}
    sink.stop()
    assert _tables(derby) == []


def test_rows_that_are_only_added(spark: SparkSession, derby: Derby) -> None:
    derby.run("CREATE TABLE seen (id INT, v INT)", "CREATE TABLE orders (id INT PRIMARY KEY, v INT)")
    sink = sink_of(derby.url, insert__mode="insert", pk__mode="none", table__name__format="seen")
    sink.write(GivenBatch(spark, [Given(n, None, {"id": n % 2, "v": n}) for n in range(4)]))
    assert derby.rows("SELECT id, v FROM seen ORDER BY v") == [("0", "0"), ("1", "1"), ("0", "2"), ("1", "3")]
    sink.stop()
    derby.run('DELETE FROM "headrace_jdbc_positions"')
    by_key = sink_of(derby.url, insert__mode="insert")
    given = [Given(n, {"id": n % 3}, {"v": n}) for n in range(5)]
    batch = GivenBatch(spark, [*given, Given(5, {"id": 9}, None)], tolerant=True)
    by_key.write(batch)
    assert derby.rows("SELECT id, v FROM orders ORDER BY id") == [("0", "0"), ("1", "1"), ("2", "2")]
    assert sorted(each.offset for each in batch.letters) == [3, 4], "the key is there already"
    by_key.stop()


def test_topics_have_tables_and_names_are_only_names(spark: SparkSession, derby: Derby) -> None:
    evil = 'x"; DROP TABLE orders; --'
    derby.run("CREATE SCHEMA shop", "CREATE TABLE orders (id INT PRIMARY KEY, v INT)")
    quoted = evil.replace('"', '""')
    derby.run(f'CREATE TABLE shop.people (id INT PRIMARY KEY, "{quoted}" INT, v_1 INT)')
    derby.run("CREATE TABLE shop.peopleX (id INT PRIMARY KEY)")
    sink = sink_of(derby.url, table__name__format="${table}")
    sink.write(
        GivenBatch(
            spark,
            [
                Given(0, {"id": 1}, {"v": 1}),
                Given(0, {"id": 2}, {evil: 2, "V_1": 3}, topic="pg.shop.people"),
            ],
        )
    )
    assert derby.rows("SELECT * FROM orders") == [("1", "1")]
    assert derby.rows("SELECT * FROM shop.people") == [("2", "2", "3")]
    nowhere = GivenBatch(spark, [Given(1, {"id": 2}, {"v": 1}, topic='a"; DROP TABLE orders')])
    with pytest.raises(ConnectorFailure, match="does not exist: make it"):
        sink.write(nowhere)
    strange = GivenBatch(spark, [Given(1, {"id": 2}, {evil: 1})])
    with pytest.raises(GiveUp, match="the table has no column x"):
        sink.write(strange)
    sink.stop()
    derby.run("CREATE TABLE bare (v INT)")
    with pytest.raises(GiveUp, match=r"bare has no primary key: name the columns of the key in pk\.fields"):
        sink_of(derby.url, table__name__format="bare").write(GivenBatch(spark, [Given(1, {"id": 2}, {})]))
    named = sink_of(derby.url, table__name__format="bare", pk__fields="v")
    named.write(GivenBatch(spark, [Given(1, 5, {}), Given(2, 5, {}), Given(3, 6, {})]))
    assert derby.rows("SELECT * FROM bare ORDER BY v") == [("5",), ("6",)]
    named.stop()


def test_rows_of_repeated_tasks_and_of_dead_workers(
    spark: SparkSession, derby: Derby, monkeypatch: pytest.MonkeyPatch
) -> None:
    derby.run("CREATE TABLE orders (id INT PRIMARY KEY, v INT)")
    written = StagedTable._write
    times: list[int] = []

    def twice(self: StagedTable, *given: object) -> None:
        times.append(1)
        for _ in range(2 if len(times) == 1 else 1):
            written(self, *given)  # type: ignore[arg-type]  # passed on

    class Died(Exception):
        pass

    def dies(self: StagedTable, *given: object) -> None:
        written(self, *given)  # type: ignore[arg-type]  # passed on
        raise Died

    batch = GivenBatch(spark, [Given(n, {"id": n}, {"v": n}) for n in range(3)])
    monkeypatch.setattr(StagedTable, "_write", dies)
    monkeypatch.setattr(StagedTable, "discard", lambda self: None)
    dead = sink_of(derby.url)
    with pytest.raises(Died):
        dead.write(batch)
    dead.stop()
    assert len(_tables(derby)) == 1
    monkeypatch.undo()
    monkeypatch.setattr(StagedTable, "_write", twice)
    sink = sink_of(derby.url)
    sink.write(batch)
    assert len(times) == 2, "staged again"
    assert derby.rows("SELECT COUNT(*), SUM(v) FROM orders") == [("3", "3")]
    assert _tables(derby) == [], "neither its own nor what the dead one left"
    monkeypatch.setattr(jdbc_table, "_ATTEMPTS", 0)
    with pytest.raises(ConnectorFailure, match="have died 0 times"):
        sink.write(GivenBatch(spark, [Given(3, {"id": 3}, {"v": 3})]))
    sink.stop()
