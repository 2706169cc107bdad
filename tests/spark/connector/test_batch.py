"""What Spark's own connector reads in one go: which topics, from where to where, and what of each record."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, batch, create, hand_over, send, values

_HOUR_MS = 3_600_000
_FIRST_MS = 1_700_000_000_000
_COUNT = 120


def hourly(partition: int) -> list[Sent]:
    """A record an hour."""
    return [
        Sent(f"{partition}-{index:03}", partition, f"k{index}", _FIRST_MS + index * _HOUR_MS)
        for index in range(_COUNT)
    ]


@pytest.fixture(scope="module")
def topic(broker: BrokerProcess) -> str:
    """Three partitions with a record an hour in each."""
    name = create(broker.bootstrap, "hourly", partitions=3)
    send(broker.bootstrap, name, [record for partition in range(3) for record in hourly(partition)])
    return name


def expected(*ranges: tuple[int, int, int]) -> list[str]:
    """(partition, first, end) of each partition that is to be seen."""
    return [f"{partition}-{index:03}" for partition, first, end in ranges for index in range(first, end)]


WHOLE = expected((0, 0, _COUNT), (1, 0, _COUNT), (2, 0, _COUNT))


def test_subscribe_reads_every_partition(spark: SparkSession, broker: BrokerProcess, topic: str) -> None:
    rows = batch(spark, broker.bootstrap, {"subscribe": topic})
    assert values(rows) == WHOLE
    one = rows.where("partition = 1 and offset = 7").collect()[0]
    assert (bytes(one.key), bytes(one.value), one.topic, one.timestampType) == (b"k7", b"1-007", topic, 0)
    assert one.timestamp.timestamp() * 1000 == _FIRST_MS + 7 * _HOUR_MS


def test_assign_reads_only_what_it_names(spark: SparkSession, broker: BrokerProcess, topic: str) -> None:
    rows = batch(spark, broker.bootstrap, {"assign": json.dumps({topic: [0, 2]})})
    assert values(rows) == expected((0, 0, _COUNT), (2, 0, _COUNT))


def test_a_pattern_reads_every_topic_that_matches(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    beginning = new_topic()
    for end in ("-a", "-b", "-left-out"):
        create(broker.bootstrap, beginning + end)
        send(broker.bootstrap, beginning + end, [Sent(end)])
    assert values(batch(spark, broker.bootstrap, {"subscribePattern": f"^{beginning}-.$"})) == ["-a", "-b"]


def test_from_one_offset_to_another(spark: SparkSession, broker: BrokerProcess, topic: str) -> None:
    """-2 is the beginning, -1 the end."""
    options = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": 10, "1": -2, "2": 119}}),
        "endingOffsets": json.dumps({topic: {"0": 20, "1": 3, "2": -1}}),
    }
    assert values(batch(spark, broker.bootstrap, options)) == expected((0, 10, 20), (1, 0, 3), (2, 119, 120))


def test_from_one_time_to_another(spark: SparkSession, broker: BrokerProcess, topic: str) -> None:
    for_all = {
        "subscribe": topic,
        "startingTimestamp": _FIRST_MS + 10 * _HOUR_MS,
        "endingTimestamp": _FIRST_MS + 12 * _HOUR_MS - 1,
    }
    assert values(batch(spark, broker.bootstrap, for_all)) == expected((0, 10, 12), (1, 10, 12), (2, 10, 12))
    each = {
        "assign": json.dumps({topic: [0, 1]}),
        "startingOffsetsByTimestamp": json.dumps(
            {topic: {"0": _FIRST_MS + 118 * _HOUR_MS - 1, "1": _FIRST_MS + 119 * _HOUR_MS}}
        ),
    }
    assert values(batch(spark, broker.bootstrap, each)) == expected((0, 118, 120), (1, 119, 120))


def test_after_the_last_time_there_is_an_error_or_nothing_as_asked(
    spark: SparkSession, broker: BrokerProcess, topic: str
) -> None:
    late = {"subscribe": topic, "startingTimestamp": _FIRST_MS + 1000 * _HOUR_MS}
    with pytest.raises(Exception, match="No offset matched"):
        batch(spark, broker.bootstrap, late).collect()
    with_latest = {**late, "startingOffsetsByTimestampStrategy": "latest"}
    assert values(batch(spark, broker.bootstrap, with_latest)) == []


def test_more_tasks_than_partitions(spark: SparkSession, broker: BrokerProcess, topic: str) -> None:
    rows = batch(spark, broker.bootstrap, {"subscribe": topic, "minPartitions": 8})
    assert rows.rdd.getNumPartitions() >= 8
    assert values(rows) == WHOLE


def test_headers_keys_and_values_that_are_null(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = create(broker.bootstrap, new_topic())
    headers = [("a", b"1"), ("a", b"\x00\xff"), ("none", None)]
    send(broker.bootstrap, topic, [Sent("with", headers=headers), Sent("without")])
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, None, "tombstone")
    assert producer.flush(60) == 0
    rows = batch(spark, broker.bootstrap, {"subscribe": topic, "includeHeaders": "true"})
    first, second, third = rows.orderBy("offset").collect()
    assert [(header.key, header.value) for header in first.headers] == [
        ("a", b"1"),
        ("a", b"\x00\xff"),
        ("none", None),
    ]
    assert (second.key, second.headers) == (None, None)
    assert (third.value, bytes(third.key)) == (None, b"tombstone")


def test_read_committed_passes_over_what_was_aborted_or_is_open(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = create(broker.bootstrap, new_topic(), partitions=2)

    def write(word: str) -> Producer:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-{word}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        hand_over(producer, topic, [Sent(f"{word}-{index:02}", index % 2) for index in range(20)])
        assert producer.flush(60) == 0
        return producer

    write("committed").commit_transaction(60)
    write("aborted").abort_transaction(60)
    write("later").commit_transaction(60)
    unfinished = write("open")

    committed = sorted(f"{word}-{index:02}" for word in ("committed", "later") for index in range(20))
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert values(batch(spark, broker.bootstrap, options)) == committed
    assert len(values(batch(spark, broker.bootstrap, {"subscribe": topic}))) == 80

    unfinished.commit_transaction(60)
    assert len(values(batch(spark, broker.bootstrap, options))) == 60
