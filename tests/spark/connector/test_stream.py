"""Spark's own connector as a stream: it reads everything once, also in pieces, later, and from new places."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, create, grow, hand_over, send, stream, values


def numbered(word: str, count: int, partitions: int = 1) -> list[Sent]:
    return [Sent(f"{word}-{index:04}", index % partitions) for index in range(count)]


def words(word: str, count: int) -> list[str]:
    return [f"{word}-{index:04}" for index in range(count)]


class Load:
    """One table of files and one checkpoint; each call reads what has come since the last."""

    def __init__(self, spark: SparkSession, bootstrap: str, directory: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.table = str(directory / "table")
        self.checkpoint = str(directory / "checkpoint")

    def __call__(self, options: Mapping[str, object]) -> StreamingQuery:
        rows = stream(self.spark, self.bootstrap, {"startingOffsets": "earliest", **options})
        query = (
            rows.writeStream.format("parquet")
            .option("path", self.table)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        return query

    @property
    def found(self) -> DataFrame:
        return self.spark.read.parquet(self.table)


def test_available_now_reads_in_batches_and_goes_on_where_it_was(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic(), partitions=2)
    load = Load(spark, broker.bootstrap, tmp_path)
    send(broker.bootstrap, topic, numbered("first", 300, 2))
    query = load({"subscribe": topic, "maxOffsetsPerTrigger": 100})
    progress = [each["numInputRows"] for each in query.recentProgress]
    assert [rows for rows in progress if rows] == [100, 100, 100]
    assert values(load.found) == words("first", 300)

    send(broker.bootstrap, topic, numbered("second", 50, 2))
    load({"subscribe": topic})
    assert values(load.found) == words("first", 300) + words("second", 50)


def test_partitions_and_topics_that_come_later_are_read_from_their_beginning(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    beginning = new_topic()
    topic = create(broker.bootstrap, f"{beginning}-a")
    load = Load(spark, broker.bootstrap, tmp_path)
    options = {"subscribePattern": f"^{beginning}-.$"}
    send(broker.bootstrap, topic, numbered("early", 20))
    load(options)
    grow(broker.bootstrap, topic, 3)
    send(broker.bootstrap, topic, numbered("grown", 30, 3))
    send(broker.bootstrap, create(broker.bootstrap, f"{beginning}-b"), numbered("new", 10))
    load(options)
    assert values(load.found) == words("early", 20) + words("grown", 30) + words("new", 10)


def test_a_stream_may_begin_at_a_time_and_use_more_tasks_than_partitions(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic())
    send(broker.bootstrap, topic, [Sent(f"{index:03}", 0, None, 1000 + index) for index in range(100)])
    load = Load(spark, broker.bootstrap, tmp_path)
    starts = {topic: {"0": 1040}}
    load(
        {
            "assign": json.dumps({topic: [0]}),
            "startingOffsetsByTimestamp": json.dumps(starts),
            "minPartitions": 4,
        }
    )
    assert values(load.found) == [f"{index:03}" for index in range(40, 100)]


def test_a_stream_of_committed_records_waits_for_the_end_of_transactions(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    topic = create(broker.bootstrap, new_topic())
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    load = Load(spark, broker.bootstrap, tmp_path)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}

    def write(word: str) -> None:
        producer.begin_transaction()
        hand_over(producer, topic, numbered(word, 10))
        assert producer.flush(60) == 0

    write("aborted")
    producer.abort_transaction(60)
    write("committed")
    producer.commit_transaction(60)
    write("open")
    load(options)
    assert values(load.found) == words("committed", 10)
    producer.commit_transaction(60)
    load(options)
    assert values(load.found) == words("committed", 10) + words("open", 10)


def test_a_query_that_keeps_running_sees_what_is_written_meanwhile(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = create(broker.bootstrap, new_topic(), partitions=2)
    name = topic.replace("-", "_")
    rows = stream(spark, broker.bootstrap, {"subscribe": topic, "startingOffsets": "earliest"})
    query = rows.writeStream.format("memory").queryName(name).start()
    try:
        for word in ("a", "b", "c"):
            send(broker.bootstrap, topic, numbered(word, 40, 2))
            query.processAllAvailable()
        assert values(spark.table(name)) == words("a", 40) + words("b", 40) + words("c", 40)
    finally:
        query.stop()
