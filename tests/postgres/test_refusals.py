"""What cannot be captured is said in a sentence that says what to do; the slot does not fill the disk."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.connect.api import ConnectorFailure, GiveUp
from headrace.connect.position import NOWHERE
from headrace.connect.postgres.lsn import lsn_of
from tests.postgres.captured import Captured
from tests.postgres.server import PostgresServer, running_postgres

Db = psycopg.Connection[Any]
_SLOT = "headrace_orders_changes"


def test_a_table_without_a_key_is_not_published(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int)")
    db.execute("INSERT INTO orders VALUES (1)")
    captured.set(table__include__list="public.orders")
    with pytest.raises(GiveUp, match=r"table public\.orders has no primary key"):
        captured.step()
    db.execute("UPDATE orders SET id = 2")  # which Postgres would refuse if the table were published
    db.execute("ALTER TABLE orders ALTER id SET NOT NULL")
    db.execute("CREATE UNIQUE INDEX by_id ON orders (id)")
    db.execute("ALTER TABLE orders REPLICA IDENTITY USING INDEX by_id")
    captured.stop()
    captured.drain()
    db.execute("DELETE FROM orders")
    captured.drain()
    assert [value and value["op"] for _, value in captured.events("public.orders")] == ["r", "d", None]


def test_a_table_that_does_not_exist(captured: Captured) -> None:
    captured.set(table__include__list="public.nothing")
    with pytest.raises(GiveUp, match=r"table public\.nothing does not exist"):
        captured.step()


def test_a_publication_that_is_missing(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(publication__autocreate__mode="disabled", publication__name="mine")
    with pytest.raises(
        GiveUp, match=r"publication mine does not exist, and table\.include\.list names no table"
    ):
        captured.step()
    captured.set(table__include__list="public.orders")
    captured.stop()
    with pytest.raises(GiveUp, match=r'run CREATE PUBLICATION "mine" FOR TABLE "public"\."orders"'):
        captured.step()
    db.execute("CREATE PUBLICATION mine FOR TABLE orders WITH (publish = 'insert')")
    captured.stop()
    with pytest.raises(GiveUp, match="leaves out inserts, updates or deletes"):
        captured.step()


def test_a_slot_that_somebody_dropped(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    captured.stop()
    db.execute("SELECT pg_drop_replication_slot(%s)", [_SLOT])
    with pytest.raises(GiveUp, match=r"slot headrace_orders_changes is gone: .* DELETE its offsets"):
        captured.step()
    db.execute("INSERT INTO orders VALUES (1)")
    captured.stop()
    captured.position = NOWHERE
    captured.drain()
    assert captured.events("public.orders")[0][1]["op"] == "r"  # type: ignore[index]  # it has a value


def test_a_slot_that_somebody_else_reads_from(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    captured.stop()
    db.execute("INSERT INTO orders VALUES (1)")
    db.execute(
        "SELECT pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1', "
        "'publication_names', %s)",
        [_SLOT, _SLOT],
    )
    with pytest.raises(GiveUp, match="somebody else reads from the slot"):
        captured.step()


def test_a_log_that_postgres_removed() -> None:
    sizes = {"max_slot_wal_keep_size": "1MB", "max_wal_size": "32MB", "min_wal_size": "32MB"}
    with running_postgres(**sizes) as server, server.connect() as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        captured = Captured(server.port, "postgres", **{"table.include.list": "public.orders"})
        captured.drain()
        captured.stop()
        for _ in range(3):
            db.execute("INSERT INTO orders VALUES (1)")
            db.execute("SELECT pg_switch_wal()")
            db.execute("DELETE FROM orders")
            db.execute("CHECKPOINT")
        with pytest.raises(GiveUp, match=r"removed the log that it needed.*max_slot_wal_keep_size"):
            captured.step()
        captured.stop()


def test_a_server_without_logical_decoding() -> None:
    with running_postgres(wal_level="replica") as server:
        captured = Captured(server.port, "postgres", **{"table.include.list": "public.orders"})
        with pytest.raises(GiveUp, match="wal_level is replica"):
            captured.step()
        captured.stop()


def test_nobody_is_there(captured: Captured) -> None:
    captured.set(database__port="1")
    with pytest.raises(ConnectorFailure, match=r"Postgres at 127\.0\.0\.1:1 does not let owner in"):
        captured.step()


def test_another_cluster_of_databases(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    captured.stop()
    ((partition, offset),) = captured.position
    captured.position = NOWHERE.moved(partition, {**offset, "system": "1"})
    with pytest.raises(GiveUp, match=r"correct database\.hostname"):
        captured.step()


def test_a_killed_postgres_loses_nothing(postgres: PostgresServer, database: str, captured: Captured) -> None:
    """It loses what synchronous_commit=off has not written, and what nobody was told of."""
    with postgres.connect(database) as db:
        db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        captured.set(table__include__list="public.orders")
        captured.drain()
        db.execute("SET synchronous_commit = off")
        db.execute("INSERT INTO orders SELECT generate_series(1, 500)")
        captured.step()
        postgres.kill()
    postgres.start()
    captured.stop()
    captured.drain()
    with postgres.connect(database) as db:
        rows = db.execute("SELECT id FROM orders ORDER BY id").fetchall()
    assert [value["after"]["id"] for _, value in captured.events("public.orders") if value] == [
        r for (r,) in rows
    ]


def test_an_idle_slot_follows_what_others_write(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    db.execute("CREATE TABLE others (v text)")
    captured.set(table__include__list="public.orders", heartbeat__topic="beats")
    captured.drain()
    records = len(captured.events("public.orders"))
    behind = []
    for _ in range(4):
        db.execute("INSERT INTO others SELECT repeat('x', 1000) FROM generate_series(1, 3000)")
        db.execute("CHECKPOINT")
        captured.drain()
        query = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) FROM pg_replication_slots"
        behind.append(int(db.execute(f"{query} WHERE slot_name = %s", [_SLOT]).fetchone()[0]))  # type: ignore[index]
    assert max(behind) < 1_000_000, behind
    assert len(captured.events("public.orders")) == records
    assert [each for each in captured.topic if each.topic == "beats"]
    assert lsn_of(captured.offset()["lsn"]) > 0
