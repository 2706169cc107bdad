"""Spark's own connector as a writer: what it was given arrives, where and as it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.broker_process import BrokerProcess
from tests.spark.connector.topics import Sent, create, read, send, stream


def test_keys_headers_and_partitions_arrive_as_given(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str]
) -> None:
    topic = create(broker.bootstrap, new_topic(), partitions=3)
    rows = spark.range(60).selectExpr(
        "if(id % 2 = 0, cast(id as string), null) as key",
        "cast(id as string) as value",
        f"'{topic}' as topic",
        "cast(id % 3 as int) as partition",
        "array(named_struct('key', 'of', 'value', cast(cast(id as string) as binary))) as headers",
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option(
        "includeHeaders", "true"
    ).save()
    found = {int(message.value() or b""): message for message in read(broker.bootstrap, topic, 60, 3)}
    assert sorted(found) == list(range(60))
    for number, message in found.items():
        text = str(number).encode()
        assert message.partition() == number % 3
        assert message.key() == (text if number % 2 == 0 else None)
        assert message.headers() == [("of", text)]


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_arrives(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], compression: str
) -> None:
    topic = create(broker.bootstrap, new_topic())
    rows = spark.range(200).selectExpr("repeat(cast(id as string), 20) as value")
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "topic": topic,
        "kafka.compression.type": compression,
    }
    rows.write.format("kafka").options(**options).save()
    found = {message.value() for message in read(broker.bootstrap, topic, 200)}
    assert found == {str(number).encode() * 20 for number in range(200)}


def test_a_stream_goes_from_topic_to_topic(
    spark: SparkSession, broker: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> None:
    source = create(broker.bootstrap, new_topic(), partitions=2)
    target = create(broker.bootstrap, new_topic(), partitions=2)
    rows = stream(spark, broker.bootstrap, {"subscribe": source, "startingOffsets": "earliest"})
    upper = rows.selectExpr("key", "upper(cast(value as string)) as value")
    writer = (
        upper.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    for word in ("a", "b"):
        send(broker.bootstrap, source, [Sent(f"{word}{index}", index % 2) for index in range(50)])
        assert writer.start().awaitTermination(300)
    found = sorted(message.value() or b"" for message in read(broker.bootstrap, target, 100, 2))
    assert found == sorted(f"{word}{index}".encode() for word in "AB" for index in range(50))
