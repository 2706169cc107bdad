"""What the source sees of Java, made in Python: errors of Kafka's client, and brokers with their topics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types

from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.source.options import Wish
from headrace.spark.source.stream import TopicStream


class _Thrown:
    """A Java error, and its class."""

    _target_id = "o1"

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def getCause(self) -> None:
        pass

    def getClass(self) -> _Thrown:
        return self

    def getSimpleName(self) -> str:
        return self._kind

    def getMessage(self) -> str:
        return f"{self._kind} was thrown"


def thrown(kind: str) -> Exception:
    return cast(Exception, Py4JJavaError("in a test", _Thrown(kind)))


class Log(NamedTuple):
    """Of a topic with one partition."""

    first: int
    end: int
    id: str = "old"


class Cluster:
    """The brokers, by all the ways in which a stream asks them."""

    def __init__(self, **topics: Log) -> None:
        self.names = set(topics)
        self.topics = topics
        self.then: Callable[[], object] | None = None
        """What happens behind the next question for offsets."""

    def offsets(self, chosen: Callable[[Log], int]) -> Offsets:
        if self.names != set(self.topics):
            raise thrown("UnknownTopicOrPartitionException")
        found = {(topic, 0): chosen(log) for topic, log in self.topics.items()}
        then, self.then = self.then, None
        if then is not None:
            then()
        return found

    # --- as the reader of Spark's connector

    def fetchLatestOffsets(self, _known: object) -> Offsets:
        return self.offsets(lambda log: log.end)

    def fetchEarliestOffsets(self) -> Offsets:
        return self.offsets(lambda log: log.first)

    # --- as `Brokers`

    def topic_ids(self) -> dict[str, str]:
        return {topic: log.id for topic, log in self.topics.items()}

    def missing(self) -> set[str]:
        return self.names - set(self.topics)


def stream(cluster: Cluster, where: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> TopicStream:
    """A run of a query on this cluster, with a checkpoint in `where`."""
    monkeypatch.setattr("headrace.spark.source.stream.Brokers", lambda _spark, _wish: cluster)
    wish = Wish(tuple(sorted(cluster.names)), {"bootstrap.servers": "localhost:9092"}, **options)
    spark, connector = MagicMock(), MagicMock()
    connector.kafkaOffsetReader.return_value = cluster
    offset = spark._jvm.org.apache.spark.sql.kafka010.KafkaSourceOffset
    offset.side_effect = lambda offsets: MagicMock(**{"json.return_value": offsets_json(offsets)})
    return TopicStream(spark, wish, connector, str(where))
