"""Samples: what cannot be had is no reason for a query to stop."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types

from headrace.spark.source.density import Sample
from headrace.spark.source.options import Wish
from headrace.spark.source.sizes import Sampler
from tests.unit.spark.source.java import thrown

T = ("t", 0)


@pytest.fixture
def spark() -> Any:
    """Its consumer reads ten records of ten bytes from wherever it is sent, and ends at 90."""
    made = MagicMock()
    consumer = made._jvm.org.apache.kafka.clients.consumer.KafkaConsumer.return_value
    consumer.endOffsets.return_value.get.return_value = 90
    consumer.poll.return_value.count.return_value = 10
    consumer.position.side_effect = lambda _partition: consumer.seek.call_args.args[1] + 10
    consumer.metrics.return_value.get.return_value.metricValue.side_effect = range(0, 10_000, 100)
    return made


@pytest.fixture
def sampler(spark: Any) -> Sampler:
    return Sampler(spark, Wish(("t",), {"bootstrap.servers": "localhost:9092"}))


def consumer_of(spark: Any) -> Any:
    return spark._jvm.org.apache.kafka.clients.consumer.KafkaConsumer.return_value


@pytest.mark.parametrize("asked", ["poll", "endOffsets"])
@pytest.mark.parametrize(
    "kind", ["OffsetOutOfRangeException", "UnknownTopicOrPartitionException", "TimeoutException"]
)
def test_records_and_topics_that_go_meanwhile_give_no_sample(
    spark: Any, sampler: Sampler, asked: str, kind: str
) -> None:
    assert sampler.take(T, 0) == Sample(0, 10, 100)
    getattr(consumer_of(spark), asked).side_effect = thrown(kind)
    assert sampler.take(T, 20) is None
    getattr(consumer_of(spark), asked).side_effect = None
    assert sampler.take(T, 20) == Sample(20, 30, 100)


def test_what_does_not_pass_is_told(spark: Any, sampler: Sampler) -> None:
    consumer_of(spark).poll.side_effect = thrown("TopicAuthorizationException")
    with pytest.raises(Py4JJavaError):
        sampler.take(T, 0)


def test_there_is_nothing_to_sample_at_the_end(sampler: Sampler) -> None:
    assert sampler.take(T, 90) is None
