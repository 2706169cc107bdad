"""Tables that are altered, made anew and published otherwise while they are captured: nothing is missed in
silence."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest

from headrace.connect.api import ConnectorFailure, GiveUp
from tests.postgres.captured import Captured, Moment

Db = psycopg.Connection[Any]
_PUBLICATION = "headrace_orders_changes"


def _copied(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
    db.execute("CREATE TABLE people (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders VALUES (1, 'a')")
    captured.set(table__include__list="public.orders,public.people")
    captured.drain()


def _until(
    captured: Captured, kind: type[ConnectorFailure], reason: str, dies: Moment = lambda moment: None
) -> None:
    found, end = "", time.monotonic() + 60
    while not found and time.monotonic() < end:
        try:
            captured.step(dies)
        except kind as error:
            found = str(error)
    captured.stop()
    assert reason in found


@pytest.mark.parametrize(
    "statements",
    [
        "ALTER TABLE orders RENAME TO older",
        "ALTER TABLE orders RENAME TO older; CREATE TABLE orders (id int PRIMARY KEY, v text)",
        "DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY, v text)",
        f"ALTER PUBLICATION {_PUBLICATION} DROP TABLE orders",
        f"ALTER PUBLICATION {_PUBLICATION} DROP TABLE orders; UPDATE orders SET v = 'missed'; "
        f"ALTER PUBLICATION {_PUBLICATION} ADD TABLE orders",
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_changes_that_were_not_published_are_told(
    db: Db, captured: Captured, statements: str, restarted: bool
) -> None:
    _copied(db, captured)
    if restarted:
        captured.stop()
    db.execute(statements)
    _until(captured, GiveUp, "table public.orders is not the one that was captured")
    # It does not forget.
    _until(captured, GiveUp, "PATCH its offset without public.orders")


def test_a_table_that_was_made_anew_is_copied_when_its_offset_is_taken_away(
    db: Db, captured: Captured
) -> None:
    _copied(db, captured)
    captured.stop()
    db.execute("DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (7)")
    _until(captured, GiveUp, "is not the one that was captured")
    ((partition, offset),) = captured.position
    del offset["copied"]["public.orders"]
    captured.position = captured.position.moved(partition, offset)
    captured.drain()
    db.execute("INSERT INTO orders VALUES (8)")
    captured.drain()
    assert [key["id"] for key, _ in captured.events("public.orders")] == [1, 7, 8]


def test_a_table_that_was_not_wanted_for_a_while_is_copied_anew(db: Db, captured: Captured) -> None:
    _copied(db, captured)
    captured.stop()
    captured.set(table__include__list="public.people")
    db.execute("INSERT INTO people VALUES (1)")
    captured.drain()
    db.execute("UPDATE orders SET v = 'b'; INSERT INTO people VALUES (2)")
    captured.drain()
    captured.stop()
    captured.set(table__include__list="public.orders,public.people")
    captured.drain()
    found = [
        (value and value["op"], value and value["after"]["v"])
        for _, value in captured.events("public.orders")
    ]
    assert found == [("r", "a"), ("r", "b")]


def test_a_table_that_a_publication_of_all_tables_gets_is_captured_too(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    db.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    captured.set(publication__autocreate__mode="disabled", publication__name="everything")
    captured.drain()
    db.execute("CREATE TABLE people (id int PRIMARY KEY); INSERT INTO people VALUES (1)")
    captured.run(lambda: bool(captured.events("public.people")))
    db.execute("DROP TABLE orders")
    db.execute("INSERT INTO people VALUES (2)")
    captured.run(lambda: len(captured.events("public.people")) > 1)
    assert [key["id"] for key, _ in captured.events("public.people")] == [1, 2]


def test_rows_of_tables_that_inherit_are_not_copied_as_the_tables_own(db: Db, captured: Captured) -> None:
    """Their changes come under their own names."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
    db.execute("CREATE TABLE old_orders (PRIMARY KEY (id)) INHERITS (orders)")
    db.execute("INSERT INTO orders VALUES (1, 'own'); INSERT INTO old_orders VALUES (1, 'other')")
    captured.set(table__include__list="public.orders")
    captured.drain()
    assert captured.table("public.orders") == {'{"id": 1}': {"id": 1, "v": "own"}}


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    ("alter", "left"), [("ALTER TABLE orders ALTER v TYPE bigint USING 5", 10), ("TRUNCATE orders", 0)]
)
def test_a_range_whose_table_was_written_anew_is_read_again(
    db: Db, captured: Captured, alter: str, left: int, partitioned: bool
) -> None:
    """Its rows are gone for a snapshot that is older than the new table."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)" + " PARTITION BY RANGE (id)" * partitioned)
    if partitioned:
        db.execute("CREATE TABLE part PARTITION OF orders DEFAULT")
    db.execute("INSERT INTO orders SELECT n, 'a' FROM generate_series(1, 10) n")

    def altered(moment: str) -> None:
        if moment == "planned" and captured.is_copying:
            # It waits for nobody: those who use the table would wait behind it.
            db.execute("SET lock_timeout = '20s'")
            db.execute(alter)

    captured.set(table__include__list="public.orders", truncate__handling__mode="skip")
    _until(captured, ConnectorFailure, "public.orders was written anew", altered)
    captured.drain()
    assert [key["id"] for key, _ in captured.events("public.orders")] == list(range(1, left + 1))


def test_a_column_that_is_added_between_two_ranges_is_in_the_next_one(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders SELECT generate_series(1, 10)")
    captured.set(table__include__list="public.orders", snapshot__chunk__rows="4")
    while len(captured.events("public.orders")) < 4:
        captured.step()
    db.execute("ALTER TABLE orders ADD v int DEFAULT 7")
    captured.drain()
    rows = [value and value["after"] for _, value in captured.events("public.orders")]
    assert rows == [{"id": n} for n in range(1, 5)] + [{"id": n, "v": 7} for n in range(5, 11)]
