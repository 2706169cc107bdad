"""Which topics there are and how far they go, asked with Kafka's own client in Spark's process.

So whatever security the connector is configured with works here too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.core.errors import HeadraceError
from headrace.spark.jvm import require_kafka
from headrace.spark.kafka_client import is_gone, java_properties, told, topic_id

_PATIENCE_MS: Final = 15_000
"""A job looks after many topics: none may keep it for the minute that Kafka's client would wait."""


class BrokersUnreachable(HeadraceError):
    """Says which were asked, and what Kafka's client said."""


def _client(spark: SparkSession, kafka: Mapping[str, str]) -> Any:
    admin_class = require_kafka(spark, "the pipeline")
    properties = java_properties(spark, kafka)
    try:
        return admin_class.create(properties)
    except Py4JJavaError as error:
        raise BrokersUnreachable(
            f"{kafka['bootstrap.servers']}: {told(error, kafka)}; check [kafka]"
        ) from None


@contextmanager
def _told_who(kafka: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        raise BrokersUnreachable(
            f"the brokers at {kafka['bootstrap.servers']} do not answer: {told(error, kafka)}"
        ) from None


@contextmanager
def _admin(spark: SparkSession, kafka: Mapping[str, str]) -> Iterator[Any]:
    admin = _client(spark, kafka)
    try:
        with _told_who(kafka):
            yield admin
    finally:
        admin.close()


class TopicIds:
    """Asked for every batch, by several threads, so its client stays open; close it.

    A client that failed is not asked again: it may know only addresses that brokers have left. A new one
    begins with those that were configured.
    """

    def __init__(self, spark: SparkSession, kafka: Mapping[str, str]) -> None:
        self._spark = spark
        self._kafka = kafka
        self._admin: Any = None
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Of all topics that are there."""
        with self._client() as admin:
            return _names(self._spark, admin)

    def of(self, topic: str) -> str | None:
        """None where the topic is not there, or brokers have no ids."""
        jvm: Any = self._spark._jvm
        options = jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions().timeoutMs(_PATIENCE_MS)
        wanted = jvm.java.util.Collections.singletonList(topic)
        with self._client() as admin:
            try:
                return topic_id(admin.describeTopics(wanted, options).topicNameValues().get(topic).get())
            except Py4JJavaError as error:
                if is_gone(error):
                    return None
                raise

    @contextmanager
    def _client(self) -> Iterator[Any]:
        with self._lock:
            if self._admin is None:
                self._admin = _client(self._spark, self._kafka)
            admin = self._admin
        with _told_who(self._kafka):
            try:
                yield admin
            except Py4JJavaError:
                self._drop(admin)
                raise

    def _drop(self, failed: Any) -> None:
        with self._lock:
            if self._admin is failed:
                self._admin = None
                failed.close()

    def close(self) -> None:
        with self._lock:
            if self._admin is not None:
                self._admin.close()


def topics(spark: SparkSession, kafka: Mapping[str, str]) -> list[str]:
    with _admin(spark, kafka) as admin:
        return _names(spark, admin)


def _names(spark: SparkSession, admin: Any) -> list[str]:
    """In one string: Py4J ends an iteration over a Java set by an exception, which takes Spark 60 ms."""
    jvm: Any = spark._jvm
    return sorted(str(jvm.java.lang.String.join("\n", admin.listTopics().names().get())).split())


def ends(spark: SparkSession, kafka: Mapping[str, str], topic: str, indexes: Iterable[int]) -> dict[int, int]:
    """The offset after the last record that a reader with these settings gets, for each partition."""
    jvm: Any = spark._jvm
    clients = jvm.org.apache.kafka.clients.admin
    wanted = jvm.java.util.HashMap()
    for index in indexes:
        wanted.put(jvm.org.apache.kafka.common.TopicPartition(topic, index), clients.OffsetSpec.latest())
    level = kafka.get("isolation.level", "read_committed").upper()
    isolation = jvm.org.apache.kafka.common.IsolationLevel.valueOf(level)
    with _admin(spark, kafka) as admin:
        found = admin.listOffsets(wanted, clients.ListOffsetsOptions(isolation)).all().get()
        return {int(each.partition()): int(found[each].offset()) for each in found}


def begins(spark: SparkSession, kafka: Mapping[str, str], topic: str) -> dict[int, int]:
    """The first offset that is there, for each partition. BrokersUnreachable after some seconds."""
    jvm: Any = spark._jvm
    clients = jvm.org.apache.kafka.clients.admin
    wanted = jvm.java.util.HashMap()
    names = jvm.java.util.Collections.singletonList(topic)
    with _admin(spark, kafka) as admin:
        asked = clients.DescribeTopicsOptions().timeoutMs(_PATIENCE_MS)
        for each in admin.describeTopics(names, asked).allTopicNames().get()[topic].partitions():
            partition = jvm.org.apache.kafka.common.TopicPartition(topic, each.partition())
            wanted.put(partition, clients.OffsetSpec.earliest())
        found = admin.listOffsets(wanted, clients.ListOffsetsOptions().timeoutMs(_PATIENCE_MS)).all().get()
        return {int(each.partition()): int(found[each].offset()) for each in found}


def partitions(spark: SparkSession, kafka: Mapping[str, str], names: Iterable[str]) -> dict[str, list[int]]:
    jvm: Any = spark._jvm
    wanted = jvm.java.util.ArrayList()
    for name in names:
        wanted.add(name)
    with _admin(spark, kafka) as admin:
        described = admin.describeTopics(wanted).allTopicNames().get()
        return {
            str(name): sorted(int(each.partition()) for each in described[name].partitions())
            for name in described
        }
