"""Rows in a real Postgres, each record counted once: tasks die before, in and behind their transactions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace.connect.api import Config, ConnectorFailure, GiveUp, SinkRecord
from headrace.connect.plugins import all_settings
from headrace.connect.records import Rejected
from headrace.core.ids import TopicPartition
from headrace.spark.connect.connectors import postgres_sink
from headrace.spark.connect.connectors.postgres_sink import PostgresSink
from tests.postgres.captured import Captured
from tests.postgres.server import PostgresServer
from tests.postgres.writers import Writers, fill

Db = psycopg.Connection[Any]


@pytest.fixture
def settings(postgres: PostgresServer, database: str) -> dict[str, str]:
    return {
        "name": "rows",
        "connector.class": "postgres-sink",
        "topics": "orders",
        "database.hostname": "127.0.0.1",
        "database.port": str(postgres.port),
        "database.user": "owner",
        "database.dbname": database,
    }


def _sink(settings: dict[str, str]) -> PostgresSink:
    return PostgresSink(Config("rows", all_settings(PostgresSink).parse(settings), settings))


def _record(offset: int, key: Any, value: Any, partition: int = 0, topic: str = "orders") -> SinkRecord:
    def encoded(each: Any) -> bytes | None:
        return None if each is None else json.dumps(each).encode()

    return SinkRecord(topic, partition, offset, encoded(key), encoded(value), (), 0)


def test_rows_are_replaced_and_deleted_by_key(db: Db, settings: dict[str, str]) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v numeric, tags jsonb, at timestamptz)")
    sink = _sink(settings)
    assert sink.position() == {}
    sink.put([_record(0, {"id": 1}, {"id": 1, "v": "1.50", "tags": [1], "at": "2024-01-01T00:00:00Z"})])
    sink.put([_record(1, {"id": 2}, {"v": 2}), _record(2, {"id": 1}, {"v": 3}), _record(4, {"id": 2}, None)])
    assert db.execute("SELECT id, v::text, tags FROM orders").fetchall() == [(1, "3", [1])]
    assert sink.position() == {TopicPartition("orders", 0): 5}
    sink.alter_position({TopicPartition("orders", 0): 2})
    assert sink.position() == {TopicPartition("orders", 0): 2}
    sink.alter_position({TopicPartition("orders", 0): None})
    assert sink.position() == {}
    sink.stop()


def test_a_batch_that_comes_again_changes_nothing(db: Db, settings: dict[str, str]) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int)")
    db.execute("CREATE TABLE log (v int)")
    db.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO log VALUES (NEW.v); RETURN NEW; END'"
    )
    db.execute("CREATE TRIGGER noted BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION note()")
    records = [_record(n, {"id": n}, {"v": n}) for n in range(50)]
    for upto in (20, 50, 30, 50):
        sink = _sink(settings)
        sink.position()
        sink.put(records[:upto])
        sink.stop()
    assert sorted(v for (v,) in db.execute("SELECT v FROM log")) == list(range(50))


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_value_that_does_not_fit(db: Db, settings: dict[str, str], tolerance: str) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int CHECK (v < 100))")
    sink = _sink({**settings, "errors.tolerance": tolerance})
    sink.position()
    records = [
        _record(0, {"id": 1}, {"v": 1}),
        _record(1, {"id": 2}, {"v": "x"}),
        _record(2, {"id": 3}, {"v": 100}),
    ]
    if tolerance == "none":
        with pytest.raises(GiveUp, match="record 1 of orders-0 cannot be stored: invalid input syntax"):
            sink.put(records)
        assert db.execute("SELECT * FROM orders").fetchall() == []
        assert sink.position() == {}, "it is not passed over"
    else:
        assert [each.offset for each in sink.put(records)] == [1, 2]
        assert sink.position() == {}, "without its dead letters nothing is passed"
        assert db.execute("SELECT * FROM orders").fetchall() == []
        sink.dead = frozenset({("orders", 0, 1), ("orders", 0, 2)})
        assert sink.put(records) == []
        assert db.execute("SELECT * FROM orders").fetchall() == [(1, 1)]
        assert sink.position() == {TopicPartition("orders", 0): 3}
    sink.stop()


def test_what_comes_behind_a_refused_record_waits_for_its_dead_letter(
    db: Db, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a later transaction of the same task, too."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int)")
    monkeypatch.setattr(postgres_sink, "_AT_A_TIME", 2)
    sink = _sink({**settings, "errors.tolerance": "all"})
    sink.position()
    records = [_record(n, {"id": n}, {"v": "x" if n in (3, 7) else n}) for n in range(10)]
    assert [each.offset for each in sink.put(records)] == [3, 7], "all that there are, to be written at once"
    assert sink.position() == {TopicPartition("orders", 0): 2}
    sink.dead = frozenset({("orders", 0, 3), ("orders", 0, 7)})
    assert sink.put(records) == []
    assert [row[0] for row in db.execute("SELECT id FROM orders ORDER BY id")] == [0, 1, 2, 4, 5, 6, 8, 9]
    sink.stop()


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_what_the_converters_refuse_is_not_passed_over(
    db: Db, settings: dict[str, str], tolerance: str
) -> None:
    """Without tolerance the connector failed, was restarted, and went on behind the record."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int)")
    sink = _sink({**settings, "errors.tolerance": tolerance})
    sink.position()

    def records() -> Iterator[SinkRecord]:
        yield _record(0, {"id": 0}, {"v": 0})
        sink.unreadable.append(Rejected("orders", 0, 1, "not JSON"))
        yield _record(2, {"id": 2}, {"v": 2})

    assert sink.put(records()) == [], "the runtime knows of it"
    assert sink.position() == {}
    sink.dead, sink.unreadable = frozenset({("orders", 0, 1)}), []
    assert sink.put(records()) == []
    assert sink.position() == {TopicPartition("orders", 0): 3}
    sink.stop()


def test_a_table_that_is_not_there(settings: dict[str, str]) -> None:
    sink = _sink(settings)
    sink.position()
    with pytest.raises(ConnectorFailure, match=r"table public\.orders does not exist: make it"):
        sink.put([_record(0, {"id": 1}, {"v": 1})])
    sink.stop()


def test_a_table_follows_another_through_deaths(
    postgres: PostgresServer,
    database: str,
    db: Db,
    captured: Captured,
    settings: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Changes of one table into another: both are equal at the end, though tasks die in their
    transactions."""
    fill(db, 300)
    db.execute("CREATE SCHEMA copy")
    db.execute("CREATE TABLE copy.orders (LIKE orders INCLUDING ALL)")
    captured.set(table__include__list="public.orders")
    with Writers(postgres, database, seed=7, count=2, most=100):
        captured.step()
    captured.drain()
    log = [
        SinkRecord("orders", 0, offset, each.key, each.value, (), 0)
        for offset, each in enumerate(captured.topic)
        if isinstance(each.key, bytes)
    ]
    monkeypatch.setattr(postgres_sink, "_AT_A_TIME", 37)
    chance = random.Random(3)
    settings = {**settings, "table.name.format": "copy.orders"}
    done, deaths = 0, 0
    while done < len(log):
        sink = _sink(settings)
        done = sink.position().get(TopicPartition("orders", 0), 0)
        death = chance.randrange(10, 200)
        try:
            sink.put(_dying(log[max(0, done - chance.randrange(30)) :], death))
            done = len(log)
        except _Dead:
            deaths += 1
        sink.stop()
    assert deaths >= 3
    assert (
        db.execute("TABLE copy.orders ORDER BY id").fetchall()
        == db.execute("TABLE orders ORDER BY id").fetchall()
    )


class _Dead(Exception):
    """The task is gone."""


def _dying(records: list[SinkRecord], after: int) -> Iterator[SinkRecord]:
    for number, record in enumerate(records):
        if number == after:
            raise _Dead
        yield record


def test_what_is_too_long_is_refused_and_not_cut(db: Db, settings: dict[str, str]) -> None:
    """Cut, a key is that of another row, which would be replaced or deleted."""
    db.execute("CREATE TABLE orders (id varchar(5) PRIMARY KEY, v varchar(3), flags bit(2), c char(3))")
    db.execute("INSERT INTO orders VALUES ('abcde', 'old')")
    sink = _sink({**settings, "errors.tolerance": "all"})
    sink.position()
    records = [
        _record(0, "abcdefgh", {"v": "new"}),
        _record(1, "x", {"v": "four"}),
        _record(2, "x", {"flags": "101"}),
        _record(3, "x", {"c": "four"}),
        _record(4, "abcdefgh", None),
    ]
    refused = sink.put(records)
    assert sorted(each.offset for each in refused) == [0, 1, 2, 3]
    sink.dead = frozenset(each[:3] for each in refused)
    assert sink.put(records) == []
    assert db.execute("SELECT id, v FROM orders").fetchall() == [("abcde", "old")]
    sink.stop()


@pytest.mark.parametrize(
    ("key_type", "spellings"),
    [
        ("uuid", ("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("int", ("7", "+7")),
        ("numeric", ("1.10", "1.1")),
        ("timestamptz", ("2026-01-01T01:00:00+01:00", "2026-01-01 00:00:00Z")),
        ("text COLLATE caseless", ("a", "A")),
    ],
)
def test_keys_that_the_table_takes_for_the_same(
    db: Db, settings: dict[str, str], key_type: str, spellings: tuple[str, str]
) -> None:
    """The last of their records counts, whichever spelling it has."""
    db.execute(
        "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    db.execute(f"CREATE TABLE orders (id {key_type} PRIMARY KEY, v int)")
    one, other = spellings
    sink = _sink(settings)
    sink.position()
    for first, second in ((one, other), (other, one)):
        offset = sum(sink.position().values())
        sink.put([_record(offset, first, {"v": 1}), _record(offset + 1, second, {"v": 2})])
        assert db.execute("SELECT v FROM orders").fetchall() == [(2,)]
        sink.put([_record(offset + 2, first, {"v": 3}), _record(offset + 3, second, None)])
        assert db.execute("SELECT v FROM orders").fetchall() == []
    sink.stop()


def test_a_change_without_a_column_that_rows_must_have(db: Db, settings: dict[str, str]) -> None:
    """As of a row whose large value did not change."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int, doc text NOT NULL)")
    db.execute("INSERT INTO orders VALUES (1, 1, 'long')")
    sink = _sink(settings)
    sink.position()
    sink.put([_record(0, {"id": 1}, {"v": 2}), _record(1, {"id": 1}, {})])
    sink.put([_record(2, {"id": 1}, {})])
    assert db.execute("SELECT * FROM orders").fetchall() == [(1, 2, "long")]
    with pytest.raises(GiveUp, match="doc"):
        sink.put([_record(3, {"id": 2}, {"v": 2})])
    sink.stop()


def test_numbers_that_the_database_makes_itself_are_those_of_the_records(
    db: Db, settings: dict[str, str]
) -> None:
    db.execute("CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int)")
    sink = _sink(settings)
    sink.position()
    sink.put([_record(0, {"id": 41}, {"v": 1})])
    assert db.execute("SELECT * FROM orders").fetchall() == [(41, 1)]
    sink.stop()
