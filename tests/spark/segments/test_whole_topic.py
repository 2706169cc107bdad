"""A topic as one frame: a part is in the lake's table, a part in a bucket, and a part with brokers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace.spark import whole_topic
from headrace.spark.history.plan import HistoryRefused
from tests.broker_process import HeadraceProcess
from tests.spark.connector.topics import Sent
from tests.spark.lake.conftest import LakeUnderTest
from tests.spark.segments import histories
from tests.spark.segments.histories import Bucket

Answer = dict[tuple[int, int], tuple[int | None, bool]]
"""Of each record the number in its value, and whether it could be decoded."""


def records(first: int, count: int) -> list[Sent]:
    """Every ninth cannot be decoded."""
    return [
        Sent(
            "no json" if number % 9 == 4 else f'{{"id": {number}, "text": "{"x" * (number % 300)}"}}',
            number % histories.PARTITIONS,
            f"key-{number}",
            histories.BEGIN_MS + number,
            [("h", b"1")] if number % 2 else [],
        )
        for number in range(first, first + count)
    ]


def expected(sent: list[Sent]) -> Answer:
    found: Answer = {}
    ends = [0] * histories.PARTITIONS
    for each in sent:
        number = each.timestamp_ms - histories.BEGIN_MS
        is_good = each.value != "no json"
        found[each.partition, ends[each.partition]] = (number if is_good else None, is_good)
        ends[each.partition] += 1
    return found


def answer(frame: DataFrame) -> Answer:
    rows = frame.select("partition", "offset", "id", "problem", "headers").collect()
    found = {(row.partition, row.offset): (row.id, row.problem is None) for row in rows}
    assert len(found) == len(rows), "a record came twice"
    assert all(row.headers is not None for row in rows)
    return found


def test_table_bucket_and_brokers_are_one_topic(
    spark: SparkSession, tiered: HeadraceProcess, bucket: Bucket, tmp_path: Path
) -> None:
    topic = histories.create(tiered, f"whole-{os.getpid()}")
    lake = LakeUnderTest(spark, tiered, tmp_path, "delta")
    config = lake.config(f'[[topics]]\nname = "{topic}"\nformat = "json"\nschema = "id bigint, text string"')
    sent = records(0, 600)
    histories.send(tiered, topic, sent)
    lake.load(config)
    sent += records(600, 1800)
    histories.send(tiered, topic, sent[600:])
    histories.wait_tiered(tiered, topic)
    sent += records(2400, 90)
    histories.send(tiered, topic, sent[2400:])
    frame = whole_topic(spark, topic, lake=config, **bucket)
    assert answer(frame) == expected(sent)
    assert frame.columns[:6] == ["topic", "partition", "offset", "timestamp", "key", "headers"]
    plan = frame._jdf.queryExecution().toString()
    assert all(word in plan for word in ("headrace-segments", "parquet", "KafkaRelation")), plan
    histories.send(tiered, topic, records(2490, 30))
    assert frame.count() == len(sent), "its ends were settled when it was made"
    good = whole_topic(spark, topic, lake=config, undecodable="drop")
    assert good.count() == sum(each.value != "no json" for each in [*sent, *records(2490, 30)])
    assert "problem" not in good.columns


def test_without_a_lake_every_record_is_as_a_consumer_gets_it(
    spark: SparkSession, tiered: HeadraceProcess, bucket: Bucket
) -> None:
    topic = histories.create(tiered, f"lakeless-{os.getpid()}")
    count = histories.fill(tiered, topic, rounds=1)
    histories.wait_tiered(tiered, topic)
    frame = whole_topic(spark, topic, kafka=tiered.bootstrap, **bucket)
    assert histories.rows(frame) == histories.consumed(tiered, topic, count)


def test_what_does_not_go_together_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(HistoryRefused, match="say where the brokers are"):
        whole_topic(spark, "orders")
    with pytest.raises(HistoryRefused, match="undecodable is keep or drop"):
        whole_topic(spark, "orders", kafka="127.0.0.1:1", undecodable="fail")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(HistoryRefused, match="endpoint: of which bucket"):
        whole_topic(spark, "orders", kafka="127.0.0.1:1", endpoint="http://127.0.0.1:1")
