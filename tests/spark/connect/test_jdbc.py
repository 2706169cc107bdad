"""Rows of a database by its JDBC driver and Spark's reader: Derby, whose jar comes with Spark, in a session
that other tests use too. The loop is that of a worker, over a topic that keeps records and position
together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.connect.api import Config, ConnectorFailure, GiveUp
from headrace.connect.plugins import all_settings
from headrace.connect.position import NOWHERE, position_of
from headrace.spark.connect.connectors.jdbc_rows import JdbcRows


class Database:
    """Derby inside the session's Java process."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.url = f"jdbc:derby:{folder / 'db'}"
        jvm: Any = spark._jvm
        # Derby asks for it once, and otherwise writes into the directory of whoever runs this.
        jvm.java.lang.System.setProperty("derby.stream.error.file", str(folder / "derby.log"))
        self._manager = jvm.java.sql.DriverManager
        self._first = self.connect(";create=true")

    def connect(self, further: str = "") -> Any:
        return self._manager.getConnection(self.url + further)

    def run(self, *statements: str) -> None:
        _run(self._first, *statements)

    def close(self) -> None:
        self._first.close()


def _run(connection: Any, *statements: str) -> None:
    statement = connection.createStatement()
    for each in statements:
        statement.execute(each)
    statement.close()


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    made = Database(spark, tmp_path)
    yield made
    made.close()


class Asked:
    def __init__(self, spark: SparkSession, url: str, **settings: str) -> None:
        given = {
            "name": "rows",
            "connector.class": "jdbc-rows",
            "connection.url": url,
            "topic.prefix": "db",
            "table.include.list": "orders",
            "batch.max.rows": "3",
            **{name.replace("__", "."): value for name, value in settings.items()},
        }
        self._config = Config("rows", all_settings(JdbcRows).parse(given), given)
        assert JdbcRows.check(self._config) == {}
        self._spark = spark
        self._source = JdbcRows(self._config)
        self.position = NOWHERE
        self.records: list[tuple[str, Any, Any]] = []

    def step(self) -> bool:
        step = self._source.plan(self.position)
        if step is None:
            return False
        assert step.frame is not None
        rows = step.frame(self._spark).collect()
        self.records += [(row["topic"], json.loads(row["key"]), json.loads(row["value"])) for row in rows]
        self.position = position_of(step.position.text())
        return True

    def drain(self) -> list[Any]:
        while self.step():
            pass
        return [value for _, _, value in self.records]

    def stop(self) -> None:
        self._source.stop()


def test_new_rows_come_once_with_their_types(spark: SparkSession, database: Database) -> None:
    database.run(
        "CREATE TABLE orders (id INT PRIMARY KEY, price DECIMAL(9,2), note VARCHAR(20), changed TIMESTAMP)"
    )
    asked = Asked(spark, database.url)
    assert asked.drain() == []
    for number in range(7):
        database.run(f"INSERT INTO orders VALUES ({number}, 1.50, NULL, '2026-03-01 10:00:00')")
    assert [each["ID"] for each in asked.drain()] == list(range(7))
    assert asked.records[0][:2] == ("db.orders", {"id": 0})
    assert asked.records[0][2]["PRICE"] == 1.5
    assert asked.records[0][2]["NOTE"] is None
    assert json.loads(asked.position.text())["offsets"][0]["offset"] == {"id": "6"}
    asked.stop()

    # A row whose number is smaller, but which is committed later, is waited for.
    database.run("CALL SYSCS_UTIL.SYSCS_SET_DATABASE_PROPERTY('derby.locks.waitTimeout', '1')")
    asked = _going_on(Asked(spark, database.url), asked)
    other = database.connect()
    other.setAutoCommit(False)
    _run(other, "INSERT INTO orders (id) VALUES (7)")
    database.run("INSERT INTO orders (id) VALUES (8)")
    with pytest.raises(
        ConnectorFailure, match=r"refused SELECT id FROM orders.*A lock could not be obtained"
    ):
        asked.step()
    other.commit()
    other.close()
    assert [each["ID"] for each in asked.drain()] == [7, 8]
    asked.stop()


def _going_on(asked: Asked, before: Asked) -> Asked:
    asked.position = before.position
    return asked


def test_changed_rows_come_again_by_their_time(spark: SparkSession, database: Database) -> None:
    database.run("CREATE TABLE orders (id INT PRIMARY KEY, changed TIMESTAMP)")
    for number in range(5):
        database.run(f"INSERT INTO orders VALUES ({number}, '2026-03-01 10:00:00')")
    both = "timestamp+incrementing"
    asked = Asked(spark, database.url, mode=both, timestamp__column__name="changed", batch__max__rows="2")
    assert [each["ID"] for each in asked.drain()] == [0, 1, 2, 3, 4], "also where times are the same"
    database.run("UPDATE orders SET changed = '2026-03-01 10:00:00.000000001' WHERE id = 2")
    assert [each["ID"] for each in asked.drain()][5:] == [2]
    asked.stop()
    late = Asked(
        spark,
        database.url,
        mode="timestamp",
        timestamp__column__name="changed",
        key__columns="id",
        timestamp__delay__interval__ms="60000",
    )
    database.run("UPDATE orders SET changed = CURRENT_TIMESTAMP WHERE id = 4")
    assert sorted(each["ID"] for each in late.drain()) == [0, 1, 2, 3], "what is too young comes later"
    late.stop()


def test_what_is_not_there_is_told(spark: SparkSession, database: Database) -> None:
    asked = Asked(spark, database.url)
    with pytest.raises(
        ConnectorFailure, match="refused SELECT id FROM orders WHERE 1 = 0: Table/View 'ORDERS'"
    ):
        asked.step()
    asked.stop()
    for url, driver in (("jdbc:none://x", ""), (database.url, "org.example.Driver")):
        nobody = Asked(spark, url, connection__driver=driver)
        with pytest.raises(GiveUp, match=r"its JDBC driver is not there.*spark\.driver\.extraClassPath"):
            nobody.step()
        nobody.stop()
