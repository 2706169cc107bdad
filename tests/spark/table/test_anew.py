"""What is made anew: an index that changed, what is derived from a table that is gone, and a rebuild that was
cut off before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.table.reading import as_of_one_step
from headrace.spark.table.rebuild import rebuild
from headrace.spark.table.tables.delta import KeyedDeltaTable
from headrace.spark.table.tables.keyed import last_step
from tests.broker_process import BrokerProcess
from tests.spark.table.conftest import ORDERS, PLAIN, TablesUnderTest, check_orders, order


class Killed(Exception):
    pass


def test_an_index_that_changed_is_made_anew_at_the_step_that_it_has(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = TablesUnderTest(spark, tmp_path, "delta")
    before = tables.config(ORDERS.format(topic="t"))
    tables.load(before, [(0, 0, b"a", order("ada", 1)), (0, 1, b"b", order("bob", 2))], 1)
    wanted = ORDERS.format(topic="t").replace('["customer"]', '["customer"]\ninclude = ["total"]')
    config = tables.config(wanted)
    opened = tables.opened(config)
    opened.derive(["orders_by_customer"], 1)
    rows = tables.rows(config, "orders_by_customer")
    assert {row.key: (row.customer, row.total) for row in rows} == {"a": ("ada", 1), "b": ("bob", 2)}
    assert last_step(opened.open("orders_by_customer")) == 1

    tables.load(config, [(0, 2, b"a", order("cy", 4))], 2)
    frames = as_of_one_step(spark, config, "orders")
    found = {name: frame.collect() for name, frame in frames.items()}
    check_orders(found, {"a": ("cy", 4), "b": ("bob", 2)})
    assert {row.key: row.total for row in found["orders_by_customer"]} == {"a": 4, "b": 2}

    assert opened.empty_derived(3)  # as where somebody removes the table
    assert [tables.rows(config, name) for name in ("orders_by_customer", "customers")] == [[], []]


def forget(bootstrap: str, topic: str, before: int) -> None:
    """As retention does, at once."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (done,) = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    assert done.result(30).low_watermark == before


def test_a_rebuild_after_one_that_was_cut_off_has_all_dead_letters(
    spark: SparkSession,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = new_topic()
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(PLAIN.format(topic=topic), headrace.bootstrap)
    tables.produce(headrace.bootstrap, topic, [(b"a", order("ada", 1)), (b"b", b"{")])

    def die(table: KeyedDeltaTable, rows: DataFrame, step: int) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(KeyedDeltaTable, "replace", die)
        with pytest.raises(Killed):
            rebuild(spark, config, "orders")
    assert [row.offset for row in tables.rows(config, "orders_dead_letters")] == [1]
    tables.produce(headrace.bootstrap, topic, [(b"c", b"[")])
    assert rebuild(spark, config, "orders").step == 1  # the number of the one that was cut off
    assert sorted(row.offset for row in tables.rows(config, "orders_dead_letters")) == [1, 2]

    # Bytes are always readable: offset 2 leaves the letters. Of offset 1 its letter is all that there is.
    forget(headrace.bootstrap, topic, before=2)
    plain = tables.config(f'[[tables]]\ntopic = "{topic}"\nname = "orders"\n', headrace.bootstrap)
    assert rebuild(spark, plain, "orders").dead_letters == 0
    assert [bytes(row.key) for row in tables.rows(plain, "orders")] == [b"c"]
    assert [row.offset for row in tables.rows(config, "orders_dead_letters")] == [1]
