"""What the source asks of brokers, with Kafka's own client in Spark's process.

So whatever security the connector is configured with works here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.jvm import require_classic, require_kafka
from headrace.spark.kafka_client import cause, is_gone, java_properties, told, topic_id
from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.options import SourceRefused, Wish

#: Beginning and end of a partition, or the first record at or after a time in milliseconds.
Spec = Literal["earliest", "latest"] | int


class BrokersFailed(HeadraceError):
    """What Kafka's client said, and the name of its error."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Brokers:
    """One client; close it. Safe to use from several threads, as Kafka's client is."""

    def __init__(self, spark: SparkSession, wish: Wish) -> None:
        self._jvm: Any = require_classic(spark, "the source")
        self._admin_class = require_kafka(spark, "the source")
        self._spark = spark
        self._wish = wish
        # Looked up once: each part of such a name is a question to Java.
        self._partition_class = self._class("org.apache.kafka.common.TopicPartition")
        self._position_class = self._class("org.apache.kafka.clients.consumer.OffsetAndMetadata")
        self._commit_options = self._class("org.apache.kafka.clients.admin.AlterConsumerGroupOffsetsOptions")
        self._names: list[str] = []
        self._topics = self._class("java.util.ArrayList")()
        for name in wish.topics:
            self.add(name)
        self._admin = self._client()

    def add(self, topic: str) -> None:
        """It is asked about too."""
        if topic not in self._names:
            self._names.append(topic)
            self._topics.add(topic)

    def _client(self) -> Any:
        properties = java_properties(self._spark, self._wish.client)
        try:
            return self._admin_class.create(properties)
        except Py4JJavaError as error:
            raise self._failed("be asked", error) from None

    def close(self) -> None:
        # Not longer than a second for what is under way: nobody waits for it any more.
        self._admin.close(self._jvm.java.time.Duration.ofSeconds(1))

    def _failed(self, what: str, error: Py4JJavaError) -> BrokersFailed:
        brokers, said = self._wish.kafka["bootstrap.servers"], told(error, self._wish.kafka)
        return BrokersFailed(f"the brokers at {brokers} could not {what}: {said}", cause(error)[0])

    def topic_ids(self) -> dict[str, str]:
        """Of those topics that exist. A topic that is made anew has another id."""
        return {
            name: told
            for name, described in self._described().items()
            if (told := topic_id(described)) is not None
        }

    def missing(self) -> set[str]:
        """Topics that do not exist."""
        return set(self._names) - set(self._described())

    def partitions(self) -> list[tuple[str, int]]:
        described = self._described()
        missing = sorted(set(self._names) - set(described))
        if missing:
            raise SourceRefused(f"there is no topic {', '.join(missing)}: create it, or correct the name")
        return [
            (name, int(each.partition())) for name, told in described.items() for each in told.partitions()
        ]

    def _described(self) -> dict[str, Any]:
        answers = self._admin.describeTopics(self._topics).topicNameValues()
        found = {}
        for name in list(self._names):
            try:
                found[name] = answers.get(name).get()
            except Py4JJavaError as error:
                if not is_gone(error):
                    raise self._failed(f"describe topic {name}", error) from None
        return found

    def offsets(self, partitions: Iterable[tuple[str, int]], spec: Spec) -> Offsets:
        """A time that no record has reached means the end."""
        asked = self._jvm.java.util.HashMap()
        specs = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        java = (
            specs.earliest()
            if spec == "earliest"
            else specs.latest()
            if spec == "latest"
            else specs.forTimestamp(spec)
        )
        for partition in partitions:
            asked.put(self._partition(partition), java)
        levels = self._jvm.org.apache.kafka.common.IsolationLevel
        level = levels.READ_COMMITTED if self._wish.committed_only else levels.READ_UNCOMMITTED
        options = self._jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        try:
            answer = self._admin.listOffsets(asked, options).all().get()
        except Py4JJavaError as error:
            raise self._failed("tell offsets", error) from None
        found = {
            (str(entry.getKey().topic()), int(entry.getKey().partition())): int(entry.getValue().offset())
            for entry in answer.entrySet()
        }
        late = [partition for partition, offset in found.items() if offset < 0]
        return {**found, **self.offsets(late, "latest")} if late else found

    def committed(self, group: str) -> Offsets:
        try:
            answer = self._admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
        except Py4JJavaError as error:
            raise self._failed(f"tell the offsets of group {group}", error) from None
        return {
            (str(entry.getKey().topic()), int(entry.getKey().partition())): int(entry.getValue().offset())
            for entry in answer.entrySet()
            if entry.getValue() is not None
        }

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int], timeout_ms: int) -> None:
        wanted = self._jvm.java.util.HashMap()
        for partition, offset in offsets.items():
            wanted.put(self._partition(partition), self._position_class(offset))
        options = self._commit_options()
        options.timeoutMs(timeout_ms)
        answer = self._admin.alterConsumerGroupOffsets(group, wanted, options)
        try:
            answer.all().get()
        except Py4JJavaError as whole:
            # This says only which partitions failed, and each partition why.
            for partition in offsets:
                try:
                    answer.partitionResult(self._partition(partition)).get()
                except Py4JJavaError as error:
                    raise self._failed(f"commit offsets to group {group}", error) from None
            raise self._failed(f"commit offsets to group {group}", whole) from None

    def _partition(self, partition: tuple[str, int]) -> Any:
        return self._partition_class(*partition)

    def _class(self, name: str) -> Any:
        found = self._jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found
