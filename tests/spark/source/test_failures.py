"""Batches that fail: the group is never ahead of what is done, and a repeated batch is the same one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.source.topic import stream_topic
from tests.broker_process import HEADRACE, BrokerProcess
from tests.spark.connector.topics import Sent, create, send
from tests.spark.source.queries import committed, delete, eventually


class Falling:
    """A sink that fails in one batch, once, after it has written it."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str, directory: Path) -> None:
        self.spark = spark
        self.kafka = {"bootstrap.servers": bootstrap}
        self.topic = topic
        self.directory = str(directory)
        self.batches: dict[int, list[str]] = {}
        self.fails_at: int | None = None

    def __call__(self, **options: Any) -> None:
        rows = stream_topic(self.spark, self.topic, kafka=self.kafka, group=self.topic, **options)
        query = (
            rows.selectExpr("offset", "cast(value as string) as value")
            .writeStream.foreachBatch(self._write)
            .option("checkpointLocation", self.directory)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)

    def _write(self, rows: DataFrame, batch: int) -> None:
        found = [row.value for row in rows.orderBy("offset").collect()]
        assert self.batches.setdefault(batch, found) == found, "a repeated batch has the same records"
        if batch == self.fails_at:
            self.fails_at = None
            raise OSError("the sink has fallen")


@pytest.fixture
def sink(
    spark: SparkSession, headrace: BrokerProcess, new_topic: Callable[[], str], tmp_path: Path
) -> Falling:
    topic = create(headrace.bootstrap, new_topic())
    send(headrace.bootstrap, topic, [Sent(f"old{index}") for index in range(9)])
    return Falling(spark, headrace.bootstrap, topic, tmp_path)


def test_a_batch_that_fails_is_not_committed(headrace: BrokerProcess, sink: Falling) -> None:
    sink.fails_at = 1
    with pytest.raises(StreamingQueryException, match="the sink has fallen"):
        sink(max_records=4)
    assert committed(headrace.bootstrap, sink.topic, sink.topic, 1) == [4]
    told = subprocess.run(
        [HEADRACE, "group", "lag", sink.topic, "--bootstrap", headrace.bootstrap, "--json"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert '"lag": 5' in json.dumps(json.loads(told.stdout))
    # The batch that failed is the same, whatever the limit is now.
    sink(max_records=100)
    assert [len(each) for each in sink.batches.values()] == [4, 4, 1]
    assert committed(headrace.bootstrap, sink.topic, sink.topic, 1) == [9]


def test_a_batch_that_fails_is_not_repeated_with_records_of_a_topic_made_anew(
    headrace: BrokerProcess, sink: Falling
) -> None:
    sink.fails_at = 1
    with pytest.raises(StreamingQueryException, match="the sink has fallen"):
        sink(max_records=4)
    delete(headrace.bootstrap, sink.topic)
    create(headrace.bootstrap, sink.topic)
    send(headrace.bootstrap, sink.topic, [Sent(f"new{index:02}") for index in range(20)])
    with pytest.raises(StreamingQueryException, match="was deleted and made anew"):
        sink()
    del sink.batches[1]
    sink(on_loss="earliest")
    assert [len(each) for each in sink.batches.values()] == [4, 0, 0, 20]
    assert sink.batches[3] == [f"new{index:02}" for index in range(20)]
    assert committed(headrace.bootstrap, sink.topic, sink.topic, 1) == [20]


@pytest.mark.parametrize("choice", ["earliest", "latest"])
def test_a_passage_that_fails_is_made_again(headrace: BrokerProcess, sink: Falling, choice: str) -> None:
    sink()
    delete(headrace.bootstrap, sink.topic)
    create(headrace.bootstrap, sink.topic)
    send(headrace.bootstrap, sink.topic, [Sent(f"new{index}") for index in range(20)])
    sink.fails_at = 1
    with pytest.raises(StreamingQueryException, match="the sink has fallen"):
        sink(on_loss=choice)
    assert committed(headrace.bootstrap, sink.topic, sink.topic, 1) == [-1001]
    # The choice was made when the passage was: to repeat it needs none.
    sink()
    new = [f"new{index}" for index in range(20)]
    assert sink.batches.pop(1) == []
    assert [*sink.batches.values()][1:] == ([new] if choice == "earliest" else [])
    assert committed(headrace.bootstrap, sink.topic, sink.topic, 1) == [20]


def test_nothing_stays_behind_a_query(spark: SparkSession, sink: Falling) -> None:
    def listeners() -> set[str]:
        return {str(each) for each in spark._jsparkSession.streams().listListeners()}

    before = listeners()  # the one of an earlier query may be among them, and go
    sink()
    eventually(lambda: listeners() <= before, "the listener is gone")
