"""Typed columns beside the record's own, for batches and streams, and the reason where there are none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.reachable import NobodyListens
from headrace.spark.source.options import SourceRefused
from headrace.spark.source.topic import read_topic, stream_topic
from tests.broker_process import BrokerProcess
from tests.ports import own_port
from tests.spark.connector.topics import Sent, create, send
from tests.spark.source.queries import remove_before

JSON = Decoding(Format.JSON, "id bigint not null, key string, total double")
RECORD = ["topic", "partition", "offset", "timestamp", "key", "headers"]
ORDERS = [
    Sent('{"id":1,"key":"k","total":2.5}', 0, "a", 1_000, (("h", b"x"),)),
    Sent('{"id":"one"}', 0, "b", 2_000),
    Sent('{"id":3}', 0, None, 3_000),
]


@pytest.fixture
def orders(broker: BrokerProcess, new_topic: Callable[[], str]) -> str:
    topic = create(broker.bootstrap, new_topic())
    send(broker.bootstrap, topic, ORDERS)
    return topic


def test_a_batch_has_typed_columns_and_the_reason_of_what_has_none(
    spark: SparkSession, broker: BrokerProcess, orders: str
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap}

    def read(**options: Any) -> Any:
        return read_topic(spark, orders, kafka=kafka, decoding=JSON, **options)

    frame = read()
    assert frame.columns == [*RECORD, "id", "value_key", "total", "problem"]
    rows = frame.orderBy("offset").collect()
    assert [(row.offset, row.id, row.value_key, row.total) for row in rows] == [
        (0, 1, "k", 2.5), (1, None, None, None), (2, 3, None, None),
    ]  # fmt: skip
    assert [row.problem for row in rows] == [None, "wrong type for field id: one is not bigint", None]
    assert rows[0].topic == orders
    assert bytes(rows[0].key) == b"a"
    assert [(each.key, bytes(each.value)) for each in rows[0].headers] == [("h", b"x")]
    kept = read(undecodable="drop", keep_value=True)
    assert kept.columns == [*RECORD, "value", "id", "value_key", "total"]
    assert sorted(row.offset for row in kept.collect()) == [0, 2]
    with pytest.raises(PySparkException, match=rf"{orders}, partition 0, offset 1 cannot be decoded: wrong"):
        read(undecodable="fail").count()
    assert read_topic(spark, orders, kafka=kafka).columns == [*RECORD, "value"]


def test_a_batch_is_what_lies_between_its_ends_when_it_was_asked_for(
    spark: SparkSession, broker: BrokerProcess, orders: str
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap}

    def offsets(**options: Any) -> list[int]:
        return sorted(row.offset for row in read_topic(spark, orders, kafka=kafka, **options).collect())

    frame = read_topic(spark, orders, kafka=kafka)
    send(broker.bootstrap, orders, [Sent("later", timestamp_ms=4_000)])
    assert frame.count() == 3
    assert offsets() == [0, 1, 2, 3]
    assert offsets(start={orders: {0: 1}}, end={orders: {0: 3}}) == [1, 2]
    second = datetime.fromtimestamp(2, UTC)
    assert offsets(start=second, end=datetime.fromtimestamp(4, UTC)) == [1, 2]
    assert offsets(end=second) == [0]
    remove_before(broker.bootstrap, orders, 2)
    assert offsets() == [2, 3]
    with pytest.raises(SourceRefused, match=r'1 offsets from 1 on are gone.* on_loss="earliest"'):
        offsets(start={orders: {0: 1}})
    assert offsets(start={orders: {0: 1}}, on_loss="earliest") == [2, 3]


def test_a_stream_has_the_same_columns(
    spark: SparkSession, broker: BrokerProcess, orders: str, tmp_path: Path
) -> None:
    frame = stream_topic(spark, orders, kafka={"bootstrap.servers": broker.bootstrap}, decoding=JSON)
    batches: list[list[Any]] = []
    query = (
        frame.writeStream.foreachBatch(lambda rows, _: batches.append(rows.orderBy("offset").collect()))
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    [rows] = batches
    assert [row.id for row in rows] == [1, None, 3]
    assert [row.problem is None for row in rows] == [True, False, True]
    assert [*rows[0].asDict()] == [*RECORD, "id", "value_key", "total", "problem"]


def test_brokers_and_columns_may_be_texts(spark: SparkSession, broker: BrokerProcess, orders: str) -> None:
    frame = read_topic(spark, orders, kafka=broker.bootstrap, decoding="id bigint, total double")
    assert frame.where("problem is null").agg({"id": "sum"}).collect()[0][0] == 4


def test_a_typo_in_the_columns_is_named(spark: SparkSession, broker: BrokerProcess, orders: str) -> None:
    with pytest.raises(DecodingRefused, match=r"'id bignt, total double'\. Spark says: .*BIGNT"):
        read_topic(spark, orders, kafka=broker.bootstrap, decoding="id bignt, total double")


def test_a_wrong_port_is_told_before_kafkas_client_has_tried(spark: SparkSession) -> None:
    for read in (read_topic, stream_topic):
        with pytest.raises(NobodyListens, match="Connection refused"):
            read(spark, "orders", kafka=f"127.0.0.1:{own_port()}")
