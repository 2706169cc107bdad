"""Rows that are new by a column that rises, of a real Postgres."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.connect.api import Config, GiveUp, Record
from headrace.connect.plugins import all_settings
from headrace.connect.position import NOWHERE, Position, position_of
from headrace.spark.connect.connectors.postgres_rows import PostgresRows
from tests.postgres.server import PostgresServer

Db = psycopg.Connection[Any]


class Asked:
    def __init__(self, settings: dict[str, str]) -> None:
        self._config = Config("rows", all_settings(PostgresRows).parse(settings), settings)
        self._source = PostgresRows(self._config)
        self.position: Position = NOWHERE
        self.records: list[Record] = []

    def step(self) -> bool:
        step = self._source.plan(self.position)
        if step is None:
            return False
        for part in step.parts:
            task = PostgresRows(self._config)
            self.records += task.read(part)
            task.stop()
        self.position = position_of(step.position.text())
        return True

    def drain(self) -> list[Any]:
        while self.step():
            pass
        return [each.value for each in self.records]

    def restart(self) -> None:
        self._source.stop()
        self._source = PostgresRows(self._config)


@pytest.fixture
def settings(postgres: PostgresServer, database: str) -> dict[str, str]:
    return {
        "name": "rows",
        "connector.class": "postgres-rows",
        "topic.prefix": "db",
        "table.include.list": "public.orders",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": "owner",
        "database.dbname": database,
    }


@pytest.fixture
def asked(settings: dict[str, str]) -> Iterator[Asked]:
    made = Asked({**settings, "batch.max.rows": "3"})
    yield made
    made.restart()


def test_new_rows_come_once(db: Db, asked: Asked) -> None:
    db.execute("CREATE TABLE orders (id serial PRIMARY KEY, v numeric)")
    assert asked.drain() == []
    db.execute("INSERT INTO orders (v) SELECT n FROM generate_series(1, 10) n")
    assert [each["id"] for each in asked.drain()] == list(range(1, 11))
    asked.restart()
    db.execute("INSERT INTO orders (v) VALUES (1.50)")
    assert asked.drain()[10:] == [{"id": 11, "v": "1.50"}]
    assert asked.records[-1].topic == "db.public.orders"
    assert asked.records[-1].key == {"id": 11}
    assert json.loads(asked.position.text())["offsets"][0]["offset"] == {"id": "11"}


def test_a_row_that_is_committed_late_is_not_passed(
    postgres: PostgresServer, database: str, db: Db, asked: Asked
) -> None:
    db.execute("CREATE TABLE orders (id serial PRIMARY KEY)")
    with postgres.connect(database, autocommit=False) as other:
        other.execute("INSERT INTO orders DEFAULT VALUES")
        db.execute("INSERT INTO orders DEFAULT VALUES")
        assert [asked.step() for _ in range(3)] == [False] * 3
        other.commit()
    assert [each["id"] for each in asked.drain()] == [1, 2]


def test_changed_rows_come_again_by_their_time(db: Db, settings: dict[str, str]) -> None:
    asked = Asked(
        {**settings, "mode": "timestamp+incrementing", "timestamp.column.name": "at", "batch.max.rows": "2"}
    )
    db.execute("CREATE TABLE orders (id serial PRIMARY KEY, at timestamptz(6) DEFAULT clock_timestamp())")
    db.execute("INSERT INTO orders (at) SELECT '2024-01-01' FROM generate_series(1, 5)")
    assert [each["id"] for each in asked.drain()] == [1, 2, 3, 4, 5]
    db.execute("UPDATE orders SET at = clock_timestamp() WHERE id = 2")
    assert [each["id"] for each in asked.drain()][5:] == [2]
    asked.restart()


def test_what_is_not_there(db: Db, asked: Asked) -> None:
    with pytest.raises(GiveUp, match=r"table public\.orders does not exist"):
        asked.step()
    db.execute("CREATE TABLE orders (number int PRIMARY KEY)")
    with pytest.raises(GiveUp, match="has no column id: it has number"):
        asked.step()
