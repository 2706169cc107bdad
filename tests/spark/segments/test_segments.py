"""`read_segments` beside a consumer and `headrace.arrow`: from a real S3 server, and from a log directory."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession

from headrace.spark import read_segments
from headrace.spark.segments.errors import SegmentsRefused
from tests.broker_process import HeadraceProcess
from tests.ports import own_port
from tests.spark.segments import histories
from tests.spark.segments.histories import Bucket, Row

TASK_BYTES = 20_000
"""Less than a segment, so that tasks begin in the middle of one."""


class History:
    def __init__(self, broker: HeadraceProcess, topic: str) -> None:
        self.topic = histories.create(broker, topic)
        self.records = histories.fill(broker, topic)
        histories.wait_tiered(broker, topic)
        self.consumed = histories.consumed(broker, topic, self.records)


@pytest.fixture(scope="module")
def history(tiered: HeadraceProcess) -> History:
    return History(tiered, f"segments-{os.getpid()}")


@pytest.fixture
def frame(spark: SparkSession, tiered: HeadraceProcess, bucket: Bucket, history: History) -> DataFrame:
    return read_segments(spark, history.topic, kafka=tiered.bootstrap, task_bytes=TASK_BYTES, **bucket)


def within(found: list[Row], ends: dict[int, int]) -> list[Row]:
    return [row for row in found if row.offset < ends[row.partition]]


def test_each_record_that_is_in_the_bucket_comes_once_and_as_a_consumer_gets_it(
    tiered: HeadraceProcess, bucket: Bucket, history: History, frame: DataFrame
) -> None:
    found = histories.rows(frame)
    ends = {partition: offsets[-1] + 1 for partition, offsets in histories.by_partition(found).items()}
    by_arrow = histories.read_by_arrow(history.topic, bootstrap=tiered.bootstrap, **bucket)
    assert found == within(by_arrow, ends)
    assert len(ends) == histories.PARTITIONS
    assert len(found) > history.records // 3
    assert found == within(history.consumed, ends)
    assert frame.rdd.getNumPartitions() > 2 * histories.PARTITIONS
    assert frame.columns == ["topic", "partition", "offset", "timestamp", "key", "headers", "value"]


def test_a_log_directory_has_what_is_not_in_the_bucket_only(
    spark: SparkSession, tiered: HeadraceProcess, history: History
) -> None:
    frame = read_segments(spark, history.topic, files=tiered.log_dir, task_bytes=TASK_BYTES)
    found = histories.rows(frame)
    firsts = {partition: offsets[0] for partition, offsets in histories.by_partition(found).items()}
    ends = {partition: offsets[-1] + 1 for partition, offsets in histories.by_partition(found).items()}
    assert min(firsts.values()) > 0
    behind = [row for row in history.consumed if row.offset >= firsts[row.partition]]
    assert found == within(behind, ends)
    assert found


def test_filters_leave_out_segments_and_not_only_rows(frame: DataFrame) -> None:
    whole = histories.rows(frame)
    tasks = frame.rdd.getNumPartitions()
    middle = sorted(row.time_ms for row in whole)[len(whole) // 2]
    moment = datetime.fromtimestamp(middle / 1000, UTC)
    late = frame.where(frame.timestamp >= moment)
    assert histories.rows(late) == [row for row in whole if row.time_ms >= middle]
    assert late.rdd.getNumPartitions() < tasks
    some = frame.where("partition in (0, 2) and partition < 2 and offset > 40 and offset <= 200")
    assert histories.rows(some) == [row for row in whole if row.partition == 0 and 40 < row.offset <= 200]
    assert some.rdd.getNumPartitions() < tasks
    nothing = frame.where("offset < 0")
    assert histories.rows(nothing) == []


def test_options_as_a_format_of_spark(
    spark: SparkSession, tiered: HeadraceProcess, bucket: Bucket, history: History, frame: DataFrame
) -> None:
    options = {
        "topic": history.topic,
        "kafka.bootstrap.servers": tiered.bootstrap,
        "tier": bucket["tier"],
        "endpoint": bucket["endpoint"],
        "region": bucket["region"],
    }

    def reader(columns: str) -> DataFrameReader:
        return spark.read.format("headrace-segments").options(**options).option("columns", columns)

    everything = reader("offset, partition").option("isolation", "read_uncommitted").load()
    assert everything.columns == ["offset", "partition"]
    assert everything.count() > frame.count(), "aborted records are there"
    ends = {0: 60, 1: 0, 2: 0}
    some = read_segments(
        spark,
        history.topic,
        kafka=tiered.bootstrap,
        start={history.topic: {0: 50}},
        end={history.topic: ends},
        **bucket,
    )
    assert histories.rows(some) == [
        row for row in history.consumed if row.partition == 0 and 50 <= row.offset < 60
    ]
    with pytest.raises(AnalysisException, match=r"there is no column 'price'"):
        reader("price").load()
    with pytest.raises(AnalysisException, match=r"offset is bigint, not string"):
        reader("offset").schema("offset string").load().count()


def test_what_is_wrong_is_said_before_spark_begins(
    spark: SparkSession, bucket: Bucket, history: History
) -> None:
    nobody = f"127.0.0.1:{own_port()}"
    with pytest.raises(SegmentsRefused, match=r"give cluster\.id and topic\.id, or kafka\.bootstrap"):
        read_segments(spark, history.topic, **bucket)
    with pytest.raises(SegmentsRefused, match=rf"no broker at {nobody} .* Or give cluster\.id and topic\.id"):
        read_segments(spark, history.topic, kafka=nobody, **bucket)
    with pytest.raises(SegmentsRefused, match=r"there is no history of topic .* check the ids"):
        read_segments(spark, history.topic, cluster_id="other", topic_id="AAAAAAAAAAAAAAAAAAAAAQ", **bucket)
    with pytest.raises(SegmentsRefused, match="say where the segments are"):
        read_segments(spark, history.topic)
    with pytest.raises(SegmentsRefused, match="is no directory"):
        read_segments(spark, history.topic, files="/nowhere")
