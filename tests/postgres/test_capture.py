"""Changes of a real Postgres: copied rows and changes as one sequence, for readers of the records."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from headrace.connect.api import GiveUp
from tests.postgres.captured import Captured

Db = psycopg.Connection[Any]


def _ops(captured: Captured, table: str) -> list[tuple[Any, Any]]:
    return [(key.get("id"), value and value["op"]) for key, value in captured.events(table)]


def test_rows_are_copied_and_every_change_follows(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, item text, price numeric(10,2))")
    db.execute("INSERT INTO orders VALUES (1, 'bolt', 0.10), (2, 'nut', NULL)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    assert _ops(captured, "public.orders") == [(1, "r"), (2, "r")]
    db.execute("INSERT INTO orders VALUES (3, 'äöü \t\\ \"', 1e3)")
    db.execute("UPDATE orders SET price = 2.5 WHERE id = 2")
    db.execute("DELETE FROM orders WHERE id = 1")
    captured.drain()
    assert _ops(captured, "public.orders")[2:] == [(3, "c"), (2, "u"), (1, "d"), (1, None)]
    assert captured.table("public.orders") == {
        '{"id": 2}': {"id": 2, "item": "nut", "price": "2.50"},
        '{"id": 3}': {"id": 3, "item": 'äöü \t\\ "', "price": "1000.00"},
    }


def test_a_worker_that_comes_back_goes_on_where_it_was(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    captured.stop()
    db.execute("INSERT INTO orders SELECT generate_series(1, 10)")
    captured.drain()
    captured.stop()
    captured.drain()
    assert _ops(captured, "public.orders") == [(each, "c") for each in range(1, 11)]


def test_a_table_is_copied_in_ranges_of_its_key(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (b text, a int, v int, PRIMARY KEY (a, b))")
    db.execute("INSERT INTO orders SELECT 'x' || n % 7, n / 7, n FROM generate_series(1, 100) n")
    captured.set(table__include__list="public.orders", snapshot__chunk__rows="9", tasks__max="3")
    captured.drain()
    events = captured.events("public.orders")
    assert len(events) == 100
    assert [value["after"]["v"] for _, value in events if value] == list(range(1, 101))
    assert captured.steps > 3
    assert list(events[0][0]) == ["b", "a"], "keys are in the order of columns, always"
    db.execute("UPDATE orders SET v = -1 WHERE a = 3 AND b = 'x2'")
    captured.drain()
    key, value = captured.events("public.orders")[-1]
    assert list(key.items()) == [("b", "x2"), ("a", 3)]
    assert value is not None
    assert value["after"] == {"b": "x2", "a": 3, "v": -1}


def test_a_changed_key_is_a_delete_and_an_insert(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v text)")
    db.execute("INSERT INTO orders VALUES (1, 'a')")
    captured.set(table__include__list="public.orders")
    captured.drain()
    db.execute("UPDATE orders SET id = 2")
    captured.drain()
    assert _ops(captured, "public.orders") == [(1, "r"), (1, "d"), (1, None), (2, "c")]


def test_with_the_whole_row_as_identity_there_is_a_before(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (v text, id int PRIMARY KEY, doc text)")
    db.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
    db.execute("ALTER TABLE orders ALTER doc SET STORAGE EXTERNAL")
    db.execute("INSERT INTO orders VALUES ('a', 1, repeat('long', 2000))")
    captured.set(table__include__list="public.orders")
    captured.drain()
    db.execute("UPDATE orders SET v = 'b'")
    db.execute("DELETE FROM orders")
    captured.drain()
    _, (_, changed), (_, deleted), _ = captured.events("public.orders")
    assert changed is not None
    assert deleted is not None
    assert (changed["before"]["v"], changed["after"]["v"]) == ("a", "b")
    assert changed["after"]["doc"] == "long" * 2000, "a value that was not sent is taken from the row before"
    assert deleted["before"]["v"] == "b"


def test_a_value_that_is_not_sent_is_named(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v text, doc text)")
    db.execute("ALTER TABLE orders ALTER doc SET STORAGE EXTERNAL")
    db.execute("INSERT INTO orders VALUES (1, 'a', repeat('long', 2000))")
    captured.set(table__include__list="public.orders")
    captured.drain()
    db.execute("UPDATE orders SET v = 'b'")
    captured.drain()
    _, value = captured.events("public.orders")[-1]
    assert value is not None
    assert value["unchanged"] == ["doc"]
    assert value["after"] == {"id": 1, "v": "b"}


def test_columns_come_and_go(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    db.execute("INSERT INTO orders VALUES (1, 1)")
    db.execute("ALTER TABLE orders ADD w text DEFAULT 'new'")
    db.execute("INSERT INTO orders VALUES (2, 2, 'two')")
    db.execute("ALTER TABLE orders DROP v")
    db.execute("ALTER TABLE orders RENAME w TO x")
    db.execute("ALTER TABLE orders ALTER x DROP DEFAULT")
    db.execute("INSERT INTO orders VALUES (3, 'three')")
    db.execute("ALTER TABLE orders ALTER x TYPE boolean USING x = 'three'")
    db.execute("UPDATE orders SET x = x WHERE id = 3")
    captured.drain()
    rows = [value["after"] for _, value in captured.events("public.orders") if value]
    assert rows == [
        {"id": 1, "v": 1},
        {"id": 2, "v": 2, "w": "two"},
        {"id": 3, "x": "three"},
        {"id": 3, "x": True},
    ]


def test_copied_and_changed_values_look_the_same(db: Db, captured: Captured) -> None:
    db.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    db.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, c char(10), b bool, f float8, n numeric, i inet, "
        "t timestamptz, d date, iv interval, by bytea, j jsonb, a text[], m mood, u uuid, s smallint, "
        "g int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    insert = (
        "INSERT INTO orders VALUES (%s, 'ab', true, 'NaN', 1.10, '10.0.0.1', '2024-02-29 12:00:00.5+02', "
        "'2024-02-29', '1 day 02:03:04', '\\xdeadbeef', '{\"a\": [1]}', '{a,NULL,\"b c\"}', 'happy', "
        "'00000000-0000-0000-0000-000000000001', -1)"
    )
    db.execute("SET datestyle = 'German'")
    db.execute(insert, [1])
    captured.set(table__include__list="public.orders")
    captured.drain()
    db.execute(insert, [2])
    captured.drain()
    (_, copied), (_, changed) = captured.events("public.orders")
    assert copied is not None
    assert changed is not None
    assert (copied["after"].pop("id"), changed["after"].pop("id")) == (1, 2)
    assert copied["after"] == changed["after"]
    assert copied["after"]["c"] == "ab        "
    assert copied["after"]["t"] == "2024-02-29 10:00:00.5+00"
    assert (copied["after"]["b"], copied["after"]["f"], copied["after"]["i"]) == (True, "NaN", "10.0.0.1")


@pytest.mark.parametrize("mode", ["fail", "skip", "publish"])
def test_truncate(db: Db, captured: Captured, mode: str) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(table__include__list="public.orders", truncate__handling__mode=mode)
    captured.drain()
    db.execute("INSERT INTO orders VALUES (1)")
    db.execute("TRUNCATE orders")
    if mode == "fail":
        with pytest.raises(GiveUp, match=r"TRUNCATE emptied public\.orders"):
            captured.drain()
        captured.set(truncate__handling__mode="skip")
        captured.stop()
    captured.drain()
    expected = [(1, "c"), (None, "t")] if mode == "publish" else [(1, "c")]
    assert _ops(captured, "public.orders") == expected


def test_a_transaction_larger_than_a_slice_is_published_in_slices(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured.set(table__include__list="public.orders", transaction__slice__changes="1000")
    captured.drain()
    before = captured.steps
    db.execute("INSERT INTO orders VALUES (-1)")
    db.execute("INSERT INTO orders SELECT generate_series(1, 3500)")
    db.execute("INSERT INTO orders VALUES (4000)")
    while len(captured.topic) < 2001:
        captured.step()
    captured.stop()
    assert captured.offset()["seen"] == 2000
    captured.drain()
    assert [key["id"] for key, _ in captured.events("public.orders")] == [-1, *range(1, 3501), 4000]
    assert captured.steps - before >= 5


def test_rows_without_an_envelope(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int)")
    db.execute("INSERT INTO orders VALUES (1, 1)")
    captured.set(table__include__list="public.orders", output__form="rows")
    captured.drain()
    db.execute("UPDATE orders SET v = 2")
    db.execute("DELETE FROM orders")
    captured.drain()
    (_, copied), (_, changed), (_, deleted) = captured.events("public.orders")
    assert copied is not None
    assert changed is not None
    assert deleted is None
    assert {**copied, "__lsn": 0} == {"id": 1, "v": 1, "__op": "r", "__lsn": 0, "__index": 0}
    assert {**changed, "__lsn": 0} == {"id": 1, "v": 2, "__op": "u", "__lsn": 0, "__index": 1}


def test_a_table_that_is_added_is_copied_and_followed(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    db.execute("CREATE TABLE people (id int PRIMARY KEY)")
    db.execute("INSERT INTO people VALUES (1)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    captured.stop()
    captured.set(table__include__list="public.orders,public.people")
    captured.drain()
    db.execute("INSERT INTO people VALUES (2)")
    captured.drain()
    assert _ops(captured, "public.people") == [(1, "r"), (2, "c")]


def test_only_changes_without_a_copy(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders VALUES (1)")
    captured.set(table__include__list="public.orders", snapshot__mode="no_data")
    captured.drain()
    db.execute("INSERT INTO orders VALUES (2)")
    captured.drain()
    assert _ops(captured, "public.orders") == [(2, "c")]


def test_a_partitioned_table_is_one_table(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY) PARTITION BY RANGE (id)")
    db.execute("CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (0) TO (10)")
    db.execute("CREATE TABLE orders_2 PARTITION OF orders FOR VALUES FROM (10) TO (20)")
    db.execute("INSERT INTO orders VALUES (1), (11)")
    captured.set(table__include__list="public.orders")
    captured.drain()
    db.execute("UPDATE orders SET id = id + 9 WHERE id = 1")
    captured.drain()
    assert sorted(captured.table("public.orders")) == ['{"id": 10}', '{"id": 11}']


def test_a_publication_with_filters_is_copied_as_it_is_followed(db: Db, captured: Captured) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, v int, secret text)")
    db.execute("INSERT INTO orders VALUES (1, 1, 's'), (200, 2, 's')")
    db.execute("CREATE PUBLICATION mine FOR TABLE orders (id, v) WHERE (id % 200 < 100)")
    captured.set(publication__name="mine", publication__autocreate__mode="disabled")
    captured.drain()
    db.execute("INSERT INTO orders VALUES (150, 1, 's'), (2, 1, 's')")
    captured.drain()
    rows = [value["after"] for _, value in captured.events("public.orders") if value]
    assert rows == [{"id": 1, "v": 1}, {"id": 200, "v": 2}, {"id": 2, "v": 1}]
