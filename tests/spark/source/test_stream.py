"""A stream reads everything once, in batches of the size that was asked for, and its group shows how far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headrace.spark.source.options import SourceRefused
from headrace.spark.source.topic import stream_topic
from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, create, grow, send, stream
from tests.spark.source.queries import Job, committed, eventually


def numbered(word: str, count: int, partitions: int = 1, width: int = 4) -> list[Sent]:
    return [Sent(f"{word}{index:0{width}}", index % partitions) for index in range(count)]


def test_batches_are_limited_and_committed_to_the_group_through_restarts(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic(), partitions=2)
    job = Job(spark, broker.bootstrap, topic, tmp_path)
    send(broker.bootstrap, topic, numbered("a", 300, 2))
    group = f"{topic}-group"
    assert job(group=group, max_records=120) == [120, 120, 60]
    assert committed(broker.bootstrap, group, topic, 2) == [150, 150]
    grow(broker.bootstrap, topic, 3)
    send(broker.bootstrap, topic, numbered("b", 30, 3))
    assert job(group=group) == [30]
    assert committed(broker.bootstrap, group, topic, 3) == [160, 160, 10]
    assert job(group=group) == []
    assert job.values == sorted(each.value for each in (*numbered("a", 300), *numbered("b", 30)))


def test_the_group_follows_each_batch_before_the_next_is_planned(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic())
    job = Job(spark, broker.bootstrap, topic, tmp_path)
    send(broker.bootstrap, topic, numbered("a", 50))
    group = f"{topic}-group"
    with job.running("1 hour", group=group) as query:
        eventually(
            lambda: committed(broker.bootstrap, group, topic, 1) == [50] or not query.isActive,
            "the group has the first batch",
        )
        assert query.exception() is None
    assert committed(broker.bootstrap, group, topic, 1) == [50]


def test_a_group_that_has_members_is_refused_at_the_start(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic())
    send(broker.bootstrap, topic, numbered("a", 5))
    group = f"{topic}-group"
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        assert len(consumer.consume(5, 60)) == 5
        job = Job(spark, broker.bootstrap, topic, tmp_path)
        with pytest.raises(StreamingQueryException, match="choose a name that no consumer uses"):
            job(group=group)
    finally:
        consumer.close()


def test_a_stream_begins_where_a_group_of_consumers_stopped_or_tells_that_it_sets_it_back(
    spark: SparkSession,
    headrace: BrokerProcess,
    new_topic: Callable[[], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = create(headrace.bootstrap, new_topic())
    send(headrace.bootstrap, topic, numbered("a", 20))
    group = f"{topic}-group"
    consumer = Consumer(
        {"bootstrap.servers": headrace.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.consume(13, 60)[-1]
    consumer.commit(message=message, asynchronous=False)
    consumer.close()
    job = Job(spark, headrace.bootstrap, topic, tmp_path)
    assert job(group=group, start="group") == [7]
    assert job.values == [each.value for each in numbered("a", 20)[13:]]
    assert committed(headrace.bootstrap, group, topic, 1) == [20]
    assert not caplog.records
    again = Job(spark, headrace.bootstrap, topic, tmp_path / "again")
    assert again(group=group, start={topic: {0: 19}}) == [1]
    assert (
        f"group {group} was ahead of this query and is set back ({topic}, partition 0: from 20 to 19)"
        in caplog.text
    )


def test_a_checkpoint_goes_from_the_bare_connector_to_this_one_and_back(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(headrace.bootstrap, new_topic())
    job = Job(spark, headrace.bootstrap, topic, tmp_path)
    bare = stream(spark, headrace.bootstrap, {"subscribe": topic, "startingOffsets": "earliest"})

    def write(word: str) -> None:
        send(headrace.bootstrap, topic, numbered(word, 10))

    write("a")
    assert job.write(bare, {"availableNow": True}).awaitTermination(300)
    assert job(group=topic) == []
    assert committed(headrace.bootstrap, topic, topic, 1) == [10]
    write("b")
    assert job(group=topic) == [10]
    write("c")
    assert job.write(bare, {"availableNow": True}).awaitTermination(300)
    assert job.values == [each.value for word in "abc" for each in numbered(word, 10)]


def test_two_sources_in_one_query_know_their_own_offsets(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topics = [create(headrace.bootstrap, new_topic()) for _ in range(2)]
    for number, topic in enumerate(topics):
        send(headrace.bootstrap, topic, numbered("a", 10 + number))
    kafka = {"bootstrap.servers": headrace.bootstrap}
    first, second = (stream_topic(spark, each, kafka=kafka, group=topics[0]) for each in topics)
    both = first.union(second).union(first)
    query = (
        both.writeStream.format("parquet")
        .option("path", str(tmp_path / "table"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(300)
    assert spark.read.parquet(str(tmp_path / "table")).count() == 31
    assert [committed(headrace.bootstrap, topics[0], each, 1) for each in topics] == [[10], [11]]


def test_what_cannot_be_done_is_refused_at_once(spark: SparkSession, headrace: BrokerProcess) -> None:
    kafka = {"bootstrap.servers": headrace.bootstrap}
    with pytest.raises(SourceRefused, match="say group="):
        stream_topic(spark, "any", kafka={**kafka, "group.id": "mine"})
    with pytest.raises(SourceRefused, match="there is no topic not-there"):
        stream_topic(spark, "not-there", kafka=kafka, start={"not-there": {0: 1}})
