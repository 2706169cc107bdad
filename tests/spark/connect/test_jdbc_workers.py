"""Rows of a real Postgres and of a real MariaDB by their JDBC drivers, through real workers that are killed
while they stage a batch, inside the transaction, and between it and the group's offsets. The tables are
compared with what the log says, by other people's clients."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from headrace.client.cluster import Cluster
from headrace.client.producer import Producer
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord
from headrace.testing.connect import Workers
from tests.apache_kafka import CACHE
from tests.broker_process import BrokerProcess
from tests.mariadb_server import MariaDbServer, running_mariadb
from tests.postgres.server import PostgresServer, running_postgres
from tests.spark.sink.reading import Seen, create, read

pytestmark = pytest.mark.timeout(1800)

TOPIC = "jdbc-orders"
PARTITIONS = 3
KEYS = 200
RECORDS = 2_400
TOO_LARGE = 1_000_000
BATCH = "700"
COLUMNS = "id, v, note, price, at, doc"


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def maria() -> Iterator[MariaDbServer]:
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="module")
def workers(headrace: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    drivers = ("--spark", f"spark.driver.extraClassPath={CACHE / 'jdbc'}/*")
    with Workers(tmp_path_factory.mktemp("jdbc"), headrace.bootstrap, arguments=drivers) as made:
        yield made


def _values(chance: random.Random) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Changes of rows; some take a row away, some have no more than a part of it, and two do not fit."""
    for number in range(RECORDS):
        key = chance.randrange(KEYS)
        if number == RECORDS // 3:
            yield key, {"v": "x"}
        elif number == RECORDS // 2:
            yield KEYS, {"v": TOO_LARGE}  # nothing else is said of that row: a batch folds what is
        elif chance.random() < 0.15:
            yield key, None
        elif chance.random() < 0.2:
            yield key, {"v": number, "note": f"naïve 😀 {number}"}
        else:
            at = f"2026-03-{1 + number % 28:02d}T10:00:00+02:00"
            price, doc = f"{number % 977}.{number % 100:02d}", {"n": number}
            yield key, {"v": number, "note": None, "price": price, "at": at, "doc": doc}


def _fill(bootstrap: str) -> None:
    by_partition: dict[int, list[NewRecord]] = {}
    for key, value in _values(random.Random(20)):
        encoded = None if value is None else json.dumps(value).encode()
        record = NewRecord(encoded, json.dumps({"id": key}).encode(), 5)
        by_partition.setdefault(key % PARTITIONS, []).append(record)

    async def produce() -> None:
        async with Cluster(bootstrap) as cluster:
            producer = Producer(cluster)
            for partition, records in by_partition.items():
                await producer.send_batch(TopicPartition(TOPIC, partition), records)

    asyncio.run(produce())


def _rows(log: list[Seen]) -> dict[int, dict[str, Any]]:
    """What the table is when each record was counted once, in its order."""
    rows: dict[int, dict[str, Any]] = {}
    for each in sorted(log, key=lambda seen: (seen.partition, seen.offset)):
        key = json.loads(each.key or b"")["id"]
        value = json.loads(each.value) if each.value is not None else None
        if value is None:
            rows.pop(key, None)
        elif value["v"] not in ("x", TOO_LARGE):
            empty = dict.fromkeys(("note", "price", "at", "doc"))
            rows[key] = {**rows.get(key, empty), **value}
    return rows


def _seen(log: list[Seen]) -> list[int]:
    values = [json.loads(each.value)["v"] for each in log if each.value is not None]
    return sorted(value for value in values if value != "x")


def _sink(url: str, table: str, **more: str) -> dict[str, str]:
    return {
        "connector.class": "jdbc-sink",
        "connection.url": url,
        "topics": TOPIC,
        "table.name.format": table,
        "batch.max.records": BATCH,
        "poll.interval.ms": "100",
        "tasks.max": "2",
        "errors.tolerance": "all",
        **{name.replace("__", "."): value for name, value in more.items()},
    }


def _all(postgres: PostgresServer, maria: MariaDbServer) -> dict[str, dict[str, str]]:
    # A table to which records are only added shows each one that comes twice.
    added = {"insert__mode": "insert", "pk__mode": "none"}
    first = f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?user=owner"
    second = f"jdbc:mariadb://127.0.0.1:{maria.port}/shop?user=root"
    letters = "jdbc-letters"
    return {
        "pg-rows": _sink(first, "copy.orders", errors__deadletterqueue__topic__name=letters),
        "pg-seen": _sink(first, "seen", **added),
        "maria-rows": _sink(second, "orders", errors__deadletterqueue__topic__name=letters),
        "maria-seen": _sink(second, "seen", **added),
    }


def _make_tables(db: psycopg.Connection[Any], maria: MariaDbServer) -> None:
    check = f"v int NOT NULL CHECK (v < {TOO_LARGE})"
    wide = "note text, price numeric(12,2), at timestamptz, doc jsonb"
    db.execute("CREATE SCHEMA copy")
    identity = "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    db.execute(f"CREATE TABLE copy.orders (id {identity}, {check}, {wide})")
    db.execute(f"CREATE TABLE seen (v int, {wide})")
    wide = "note text, price decimal(12,2), at datetime(6), doc json"
    maria.run(
        "CREATE DATABASE shop",
        f"CREATE TABLE shop.orders (id bigint PRIMARY KEY, {check}, {wide})",
        f"CREATE TABLE shop.seen (v int, {wide})",
    )


class Held:
    """Who stages rows in Postgres, or drops what was staged after the first batch of `pg-seen` is committed,
    waits while this is held."""

    _TRIGGERS = """
        CREATE FUNCTION wait_for_stage() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
        CREATE FUNCTION on_stage() RETURNS event_trigger LANGUAGE plpgsql AS $$
        DECLARE made record;
        BEGIN
            FOR made IN SELECT * FROM pg_event_trigger_ddl_commands()
                        WHERE object_identity LIKE '%.hr\\_%' LOOP
                EXECUTE 'CREATE TRIGGER held BEFORE INSERT ON ' || made.object_identity
                    || ' FOR EACH STATEMENT EXECUTE FUNCTION wait_for_stage()';
            END LOOP;
        END $$;
        CREATE EVENT TRIGGER on_stage ON ddl_command_end WHEN TAG IN ('CREATE TABLE')
            EXECUTE FUNCTION on_stage();
        CREATE FUNCTION on_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT 1 FROM headrace_jdbc_positions
                       WHERE connector = 'pg-seen' AND topic_partition >= 0) THEN
                PERFORM pg_advisory_xact_lock_shared(2);
            END IF;
        END $$;
        CREATE EVENT TRIGGER on_drop ON ddl_command_start WHEN TAG IN ('DROP TABLE')
            EXECUTE FUNCTION on_drop()
    """

    def __init__(self, postgres: PostgresServer, db: psycopg.Connection[Any]) -> None:
        self._postgres = postgres
        self._db = db
        db.execute(self._TRIGGERS)

    @contextmanager
    def at(self, lock: str) -> Iterator[Callable[[], bool]]:
        """Gives whether somebody waits."""
        with self._postgres.connect(autocommit=False) as holder:
            holder.execute(lock)
            asked = "locktype = 'advisory' OR relation = 'seen'::regclass"
            query = f"SELECT count(*) FROM pg_locks WHERE NOT granted AND ({asked})"
            yield lambda: _count(self._db, query) > 0


def _count(db: psycopg.Connection[Any], query: str) -> int:
    row = db.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_tables_are_what_the_log_says_though_workers_are_killed(
    headrace: BrokerProcess, workers: Workers, postgres: PostgresServer, maria: MariaDbServer
) -> None:
    create(headrace.bootstrap, TOPIC, PARTITIONS)
    _fill(headrace.bootstrap)
    log = read(headrace.bootstrap, TOPIC)
    with postgres.connect() as db:
        _make_tables(db, maria)
        held = Held(postgres, db)
        staging = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'hr\\_%'"
        for lock in (
            "SELECT pg_advisory_lock(1)",  # tasks stage rows
            "LOCK TABLE seen IN EXCLUSIVE MODE",  # the transaction adds them
            "SELECT pg_advisory_lock(2)",  # it is committed, and the group's offsets are not
        ):
            with held.at(lock) as waiting:
                if not workers.workers:
                    workers.add()
                for name, config in _all(postgres, maria).items():
                    workers.put(name, config)
                workers.wait(waiting, f"somebody to wait for {lock}")
                workers.kill()
                assert _count(db, staging) > 0, "what is staged stays"
                first = _count(db, "SELECT count(*) FROM seen")
                assert (first > 0) == lock.endswith("(2)")
        workers.add()
        seen = _seen(log)
        workers.wait(lambda: _count(db, "SELECT count(*) FROM seen") >= len(seen), "Postgres to have all")
        maria_count = "SELECT count(*) FROM shop.seen"
        workers.wait(lambda: int(maria.run(maria_count)[0][0]) >= len(seen), "MariaDB to have all")
        names = list(_all(postgres, maria))
        workers.wait(lambda: all(_is_through(workers, name, log) for name in names), "all to be through")

        assert [v for (v,) in db.execute("SELECT v FROM seen ORDER BY v")] == seen
        assert [int(v) for (v,) in maria.run("SELECT v FROM shop.seen ORDER BY v")] == seen
        rows = _rows(log)
        at = "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
        query = f"SELECT id, v, note, price::text, {at}, doc FROM copy.orders"
        assert {row[0]: row for row in db.execute(query)} == {
            key: _as_postgres(key, row) for key, row in rows.items()
        }
        assert _count(db, staging) == 0, "nothing staged is left"
        found = maria.run(f"SELECT {COLUMNS} FROM shop.orders")
        assert {int(row[0]): row for row in found} == {key: _as_maria(key, row) for key, row in rows.items()}
        letters = [json.loads(each.value or b"")["v"] for each in read(headrace.bootstrap, "jdbc-letters")]
        assert set(letters) == {"x", TOO_LARGE}
        assert letters.count("x") >= 2, "of both databases"


def _is_through(workers: Workers, name: str, log: list[Seen]) -> bool:
    found = workers.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    ends = {each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"] for each in found}
    return bool(sum(ends.values()) == len(log))


def _utc(row: dict[str, Any]) -> str | None:
    return None if row["at"] is None else row["at"].replace("T10", " 08").replace("+02:00", "")


def _as_postgres(key: int, row: dict[str, Any]) -> tuple[Any, ...]:
    return key, row["v"], row["note"], _price(row), _utc(row), row["doc"]


def _as_maria(key: int, row: dict[str, Any]) -> list[str]:
    doc = None if row["doc"] is None else json.dumps(row["doc"], separators=(",", ":"))
    at = _utc(row)
    values = [str(key), str(row["v"]), row["note"], _price(row), at and f"{at}.000000", doc]
    return ["NULL" if value is None else value for value in values]


def _price(row: dict[str, Any]) -> str | None:
    return None if row["price"] is None else row["price"]
