"""What flows through connectors while they are killed: who puts it in, how far it is, whether it is right.

Each judge is somebody else's client: librdkafka, psycopg, `open`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psycopg
from confluent_kafka import Producer

from tests.document_server import DocumentServer
from tests.postgres.rebuilt import events_of, table_of
from tests.postgres.server import PostgresServer
from tests.postgres.writers import TABLE, check_histories
from tests.spark.sink.reading import Seen, create, read

Config = dict[str, str]
ORDERS = "orders"
KEYS = 60
QUICK = {"poll.interval.ms": "200"}


class Route(Protocol):
    def connectors(self) -> dict[str, Config]: ...

    def feed(self, chance: random.Random) -> None:
        """What one round is to carry."""

    def progress(self) -> int:
        """It grows as records arrive."""

    def is_through(self) -> bool: ...

    def faults(self) -> Iterator[str]:
        """What is wrong at the end."""


class Files:
    """A file, line by line, to a topic; from there to another file, and to a directory and back."""

    LINES = 1200

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        self._given: list[str] = []
        (folder / "in.txt").touch()
        for topic in ("lines", "again"):
            create(bootstrap, topic, 1)

    def connectors(self) -> dict[str, Config]:
        small = {"batch.max.records": "300", **QUICK}
        directory = {"location": str(self._folder / "files"), "format": "text"}
        return {
            "lines": {
                "connector.class": "file-source",
                "file": str(self._folder / "in.txt"),
                "topic": "lines",
                "file.batch.bytes": "8000",
                **QUICK,
            },
            "copy": {
                "connector.class": "file-sink",
                "file": str(self._folder / "out.txt"),
                "topics": "lines",
                **small,
            },
            "to-files": {
                "connector.class": "directory-sink",
                "topics": "lines",
                "batch.linger.ms": "0",
                **directory,
                **small,
            },
            "from-files": {
                "connector.class": "directory-source",
                "topic": "again",
                "file.quiet.ms": "0",
                "files.after.reading": "delete",
                **directory,
                **QUICK,
            },
        }

    def feed(self, chance: random.Random) -> None:
        first = len(self._given)
        lines = [f"line {first + n:07d} {'x' * chance.randrange(60)}" for n in range(self.LINES)]
        with (self._folder / "in.txt").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self._given += lines

    def progress(self) -> int:
        return len(self._copied())

    def is_through(self) -> bool:
        return min(len(self._copied()), len(read(self._bootstrap, "again"))) >= len(self._given)

    def faults(self) -> Iterator[str]:
        if self._copied() != self._given:
            yield "the file is not the one that was read"
        for topic in ("lines", "again"):
            found = Counter((each.value or b"").decode() for each in read(self._bootstrap, topic))
            yield from _differences(topic, found, Counter(self._given))

    def _copied(self) -> list[str]:
        path = self._folder / "out.txt"
        return path.read_text().splitlines() if path.exists() else []


class Changes:
    """A table by logical decoding, and from the topic into another table; new rows of a second table, by
    psycopg and by JDBC."""

    CHANGES, ROWS = 400, 300

    def __init__(self, bootstrap: str, postgres: PostgresServer) -> None:
        self._bootstrap = bootstrap
        self._postgres = postgres
        self._rows = 0
        for topic in ("shop.public.orders", "rows.public.entries", "jdbc.entries"):
            create(bootstrap, topic, 2)
        with postgres.connect() as db:
            db.execute(TABLE)
            db.execute("CREATE SCHEMA copy")
            db.execute("CREATE TABLE copy.orders (LIKE public.orders INCLUDING ALL)")
            db.execute("CREATE TABLE entries (id bigint PRIMARY KEY, note text)")

    def connectors(self) -> dict[str, Config]:
        address = {
            "database.hostname": "127.0.0.1",
            "database.port": str(self._postgres.port),
            "database.user": "owner",
            "database.dbname": "postgres",
            **QUICK,
        }
        rising = {"mode": "incrementing", "batch.max.rows": "100"}
        return {
            "changes": {
                "connector.class": "postgres-changes",
                "table.include.list": "public.orders",
                "topic.prefix": "shop",
                **address,
            },
            "copied": {
                "connector.class": "postgres-sink",
                "topics": "shop.public.orders",
                "table.name.format": "copy.orders",
                "batch.max.records": "200",
                **address,
            },
            "rows": {
                "connector.class": "postgres-rows",
                "table.include.list": "public.entries",
                "topic.prefix": "rows",
                **rising,
                **address,
            },
            "jdbc-rows": {
                "connector.class": "jdbc-rows",
                "connection.url": url_of(self._postgres),
                "table.include.list": "entries",
                "topic.prefix": "jdbc",
                **rising,
                **QUICK,
            },
        }

    def feed(self, chance: random.Random) -> None:
        with self._postgres.connect(autocommit=False) as db:
            for _ in range(self.CHANGES):
                self._change(db, chance)
                if chance.random() < 0.1:
                    db.commit()
            more = range(self._rows, self._rows + self.ROWS)
            with db.cursor() as cursor:
                cursor.executemany("INSERT INTO entries VALUES (%s, %s)", [(n, f"entry {n}") for n in more])
            self._rows += self.ROWS

    def _change(self, db: psycopg.Connection[Any], chance: random.Random) -> None:
        place, what = chance.randrange(10**9), chance.random()
        if what < 0.4:
            note = "n" * (place % 50)
            db.execute("INSERT INTO orders VALUES (%s, 0, %s) ON CONFLICT DO NOTHING", [place, note])
            return
        near = "id = (SELECT id FROM orders WHERE id >= %s ORDER BY id LIMIT 1)"
        change = "UPDATE orders SET v = v + 1 WHERE" if what < 0.85 else "DELETE FROM orders WHERE"
        db.execute(f"{change} {near}", [place])

    def progress(self) -> int:
        with self._postgres.connect() as db:
            (found,) = db.execute("SELECT coalesce(sum(v + 1), 0) FROM copy.orders").fetchone() or (0,)
        return int(found) + len(read(self._bootstrap, "rows.public.entries"))

    def is_through(self) -> bool:
        topics = ("rows.public.entries", "jdbc.entries")
        return not self._differs() and all(len(read(self._bootstrap, each)) >= self._rows for each in topics)

    def _differs(self) -> bool:
        one, other = "TABLE public.orders", "TABLE copy.orders"
        with self._postgres.connect() as db:
            query = f"({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})"
            return db.execute(query).fetchone() is not None

    def faults(self) -> Iterator[str]:
        with self._postgres.connect() as db:
            rows = {
                f'{{"id": {i}}}': {"id": i, "v": v, "note": n}
                for i, v, n in db.execute("TABLE public.orders")
            }
        events = events_of(_in_order(read(self._bootstrap, "shop.public.orders")))
        try:
            check_histories(events)
        except AssertionError as error:
            yield f"changes: {error}"
        if table_of(events) != rows:
            yield "the topic's table is not Postgres'"
        if self._differs():
            yield "the copied table is not Postgres'"
        for topic in ("rows.public.entries", "jdbc.entries"):
            found = Counter(json.loads(each.value or b"{}")["id"] for each in read(self._bootstrap, topic))
            yield from _differences(topic, found, Counter(range(self._rows)))


class Orders:
    """Records of a topic into tables by JDBC, each added and each counted once, and to a server by HTTP, one
    by one and as documents."""

    RECORDS = 500

    def __init__(self, bootstrap: str, postgres: PostgresServer, server: DocumentServer) -> None:
        self._bootstrap = bootstrap
        self._postgres = postgres
        self._server = server
        self._sent = 0
        create(bootstrap, ORDERS, 3)
        with postgres.connect() as db:
            db.execute("CREATE TABLE seen (v int)")
            db.execute("CREATE TABLE latest (id bigint PRIMARY KEY, v int)")

    def connectors(self) -> dict[str, Config]:
        common = {"topics": ORDERS, "batch.max.records": "120", **QUICK}
        jdbc = {"connector.class": "jdbc-sink", "connection.url": url_of(self._postgres), **common}
        return {
            "seen": {**jdbc, "table.name.format": "seen", "insert.mode": "insert", "pk.mode": "none"},
            "latest": {**jdbc, "table.name.format": "latest"},
            "posted": {
                "connector.class": "http-sink",
                "http.url": f"{self._server.url}/" + "${id}",
                "http.method": "PUT",
                **common,
            },
            "documents": {
                "connector.class": "opensearch-sink",
                "connection.url": self._server.url,
                **common,
            },
        }

    def feed(self, chance: random.Random) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True})
        for _ in range(self.RECORDS):
            key = chance.randrange(KEYS)
            value = json.dumps({"v": self._sent}).encode()
            # A key is in one partition: so its newest record is known.
            producer.produce(ORDERS, value, json.dumps({"id": key}).encode(), partition=key % 3)
            self._sent += 1
        assert producer.flush(120) == 0

    def progress(self) -> int:
        with self._postgres.connect() as db:
            (found,) = db.execute("SELECT count(*) FROM seen").fetchone() or (0,)
        return int(found)

    def is_through(self) -> bool:
        posted = {path for _, path, _, _ in self._server.requests if path != "/_bulk"}
        return (
            self.progress() >= self._sent
            and self._latest() == self._expected()
            and len(posted) >= self._sent
            and self._documents() == self._expected()
        )

    def _expected(self) -> dict[int, int]:
        records = _in_order(read(self._bootstrap, ORDERS))
        return {json.loads(each.key or b"")["id"]: json.loads(each.value or b"")["v"] for each in records}

    def _latest(self) -> dict[int, int]:
        with self._postgres.connect() as db:
            return dict(db.execute("TABLE latest").fetchall())

    def _documents(self) -> dict[int, int]:
        return {
            json.loads(name.partition("/")[2])["id"]: each["v"] for name, each in self._server.found.items()
        }

    def faults(self) -> Iterator[str]:
        with self._postgres.connect() as db:
            found = Counter(v for (v,) in db.execute("TABLE seen"))
        yield from _differences("seen", found, Counter(range(self._sent)))
        if self._latest() != self._expected():
            yield "the table of the newest is not what the log says"
        if self._documents() != self._expected():
            yield "the documents are not what the log says"
        posted = {path: body for _, path, _, body in self._server.requests if path != "/_bulk"}
        values = Counter(json.loads(body)["v"] for body in posted.values())
        yield from _differences("posted", values, Counter(range(self._sent)))

    def repeated(self) -> int:
        """Requests that came again: HTTP has no way to write once, and each carries the record's id."""
        paths = [path for _, path, _, _ in self._server.requests if path != "/_bulk"]
        return len(paths) - len(set(paths))


def url_of(postgres: PostgresServer) -> str:
    return f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres?user=owner"


def _in_order(log: list[Seen]) -> list[Seen]:
    return sorted(log, key=lambda each: (each.partition, each.offset))


def _differences(what: str, found: Counter[Any], given: Counter[Any]) -> Iterator[str]:
    missing, further = given - found, found - given
    if missing:
        yield f"{what}: {missing.total()} missing, as {next(iter(missing))}"
    if further:
        yield f"{what}: {further.total()} more than once, as {next(iter(further))}"
