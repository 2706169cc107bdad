"""Tables of real topics: kept up, rebuilt, cut off, and found again, on both brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from headrace.spark.table.config import TableConfig
from headrace.spark.table.rebuild import rebuild
from tests.broker_process import BrokerProcess
from tests.spark.committed import committed
from tests.spark.table.conftest import ORDERS, PLAIN, TablesUnderTest, check_orders, derived_names, order


class Killed(Exception):
    pass


def create(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    made = admin.create_topics([NewTopic(topic, 2, 1, config={"cleanup.policy": "compact"})])
    made[topic].result(30)


def transaction(
    broker: BrokerProcess, topic: str, records: list[tuple[bytes, bytes | None]], *, commit: bool
) -> None:
    """Leaves a marker, and with an abort records that nobody may see."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key, 0)
    assert producer.flush(30) == 0
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def check(tables: TablesUnderTest, config: TableConfig, model: dict[str, tuple[str | None, int]]) -> None:
    check_orders({name: tables.rows(config, name) for name in derived_names(config)}, model)


def latest(tables: TablesUnderTest, config: TableConfig) -> dict[str, tuple[str | None, int]]:
    rows = tables.rows(config, "orders")
    found = {row.key: (row.customer, row.total) for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_topic_is_kept_up_and_rebuilt(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = new_topic()
    create(broker, topic)
    tables = TablesUnderTest(spark, tmp_path, "delta")
    config = tables.config(
        PLAIN.format(topic=topic), broker.bootstrap, f'max_records_per_batch = 8\ngroup = "of-{topic}"'
    )
    transaction(broker, topic, [(b"a", order("ada", 1)), (b"b", order("bob", 2))], commit=True)
    transaction(broker, topic, [(b"a", order("never", 0)), (b"b", None)], commit=False)
    transaction(broker, topic, [(b"b", order("ada", 3)), (b"gone", order("cy", 9))], commit=True)
    tables.produce(broker.bootstrap, topic, [(b"x", order("bob", 5)), (b"bad", b"{")], partition=1)
    transaction(broker, topic, [(b"gone", None)], commit=True)
    (done,) = tables.run(config)
    assert len(done.batches) > 1
    assert committed(broker.bootstrap, f"of-{topic}", topic, partition=1) == 2
    model: dict[str, tuple[str | None, int]] = {"a": ("ada", 1), "b": ("ada", 3), "x": ("bob", 5)}
    assert latest(tables, config) == model

    rows = sorted(tables.rows(config, "orders"))
    rebuilt = rebuild(spark, config, "orders")
    assert sorted(tables.rows(config, "orders")) == rows
    assert (rebuilt.rows, rebuilt.dead_letters) == (3, 1)
    tables.produce(broker.bootstrap, topic, [(b"a", None), (b"new", order("cy", 7))])
    tables.run(config)
    del model["a"]
    model["new"] = ("cy", 7)
    assert latest(tables, config) == model
    assert len(tables.rows(config, "orders_dead_letters")) == 1


def test_a_rebuild_is_cut_off_anywhere(
    tables: TablesUnderTest, headrace: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = new_topic()
    config = tables.config(ORDERS.format(topic=topic), headrace.bootstrap)
    tables.produce(
        headrace.bootstrap, topic, [(b"a", order("ada", 1)), (b"b", b"{"), (b"c", order("bob", 2))]
    )
    tables.run(config)
    model: dict[str, tuple[str | None, int]] = {"a": ("ada", 1), "c": ("bob", 2)}

    def cut_off(phase: str) -> None:
        """In a rebuild that finds a record which the table does not have yet: it shows which one is there."""
        tables.produce(headrace.bootstrap, topic, [(phase.encode(), order(phase, 3))])

        def die(said: str) -> None:
            if phase in said:
                raise Killed

        with pytest.raises(Killed):
            rebuild(tables.spark, config, "orders", told=die)

    cut_off("writing")
    check(tables, config, model)  # nothing happened for readers
    tables.run(config)
    cut_off("deriving")
    model |= {"writing": ("writing", 3), "deriving": ("deriving", 3)}
    assert latest(tables, config) == model
    tables.produce(headrace.bootstrap, topic, [(b"a", None)])
    tables.run(config)
    del model["a"]
    check(tables, config, model)
    assert len(tables.rows(config, "orders_dead_letters")) == 1
