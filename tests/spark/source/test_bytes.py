"""Batches of about so many bytes, by samples: also where records grow, or are compressed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headrace.spark.source import sizes
from headrace.spark.source.options import Wish
from headrace.spark.source.sizes import Sampler
from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, create, hand_over, send
from tests.spark.source.queries import Job, remove_before


@pytest.fixture(autouse=True)
def patient_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sample a batch is made by guess: here each is to be taken, also on a slow machine."""
    monkeypatch.setattr(sizes, "_WAIT_MS", 60_000)


def batch_bytes(job: Job, most: int) -> list[int]:
    """What the values of each batch were, in order."""
    found: list[int] = []
    query = (
        job.frame(max_bytes=most)
        .writeStream.foreachBatch(
            lambda rows, _: found.append(rows.selectExpr("sum(length(value)) as s").collect()[0].s)
        )
        .option("checkpointLocation", job.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    assert [each["sources"][0]["metrics"]["estimatedBytes"] for each in query.recentProgress]
    return found


def test_batches_of_equal_records_are_as_large_as_was_asked_for(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic(), partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4", "linger.ms": 5})
    hand_over(producer, topic, [Sent("x" * 1000, index % 2) for index in range(1000)])
    assert producer.flush(60) == 0
    measured = batch_bytes(Job(spark, broker.bootstrap, topic, tmp_path), 300_000)
    assert sum(measured) == 1_000_000
    assert len(measured) == 4
    assert all(250_000 <= size <= 300_000 for size in measured[:-1]), measured


def test_batches_shrink_in_records_where_records_grow(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(headrace.bootstrap, new_topic())
    send(headrace.bootstrap, topic, [Sent("x" * (100 + index)) for index in range(2000)])
    measured = batch_bytes(Job(spark, headrace.bootstrap, topic, tmp_path), 400_000)
    assert sum(measured) == sum(100 + index for index in range(2000))
    assert all(300_000 <= size <= 440_000 for size in measured[:-1]), measured


def test_a_record_larger_than_the_limit_comes_alone(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(headrace.bootstrap, new_topic())
    send(headrace.bootstrap, topic, [Sent("x" * 50_000) for _ in range(3)])
    assert batch_bytes(Job(spark, headrace.bootstrap, topic, tmp_path), 10_000) == [50_000] * 3


def test_records_that_are_gone_give_no_sample(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = create(broker.bootstrap, new_topic())
    send(broker.bootstrap, topic, [Sent("x" * 100) for _ in range(9)])
    remove_before(broker.bootstrap, topic, 5)
    sampler = Sampler(spark, Wish((topic,), {"bootstrap.servers": broker.bootstrap}))
    try:
        assert sampler.take((topic, 0), 4) is None
        found = sampler.take((topic, 0), 5)
        assert found is not None
        assert (found.begin, found.end) == (5, 9)
    finally:
        sampler.close()
