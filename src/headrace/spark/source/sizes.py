"""Samples of records, for batches that are limited by bytes.

Sizes are those of whole records, with keys and headers, after decompression: what the tasks have to hold.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.spark.kafka_client import cause
from headrace.spark.source.density import Sample
from headrace.spark.source.limits import Partition
from headrace.spark.source.options import Wish

_SAMPLE_BYTES: Final = 64 * 1024
_WAIT_MS: Final = 2_000
#: For the first question, before which the client has to find the brokers.
_END_WAIT_MS: Final = 10_000
#: Errors of Kafka's client about a topic or records that went meanwhile; the last one, because it asks again
#: and again for a topic that is not there.
_GONE: Final = frozenset(
    (
        "NoOffsetForPartitionException",
        "OffsetOutOfRangeException",
        "UnknownTopicOrPartitionException",
        "TimeoutException",
    )
)
_ALL: Final = 1_000_000


class Sampler:
    """One consumer, which belongs to no group. Only the thread of the query may use it."""

    def __init__(self, spark: SparkSession, wish: Wish) -> None:
        self._jvm: Any = spark._jvm
        self._wish = wish
        self._consumer: Any = None
        self._read: Any = None
        #: The last of each partition: a batch mostly begins where the one before it was sampled.
        self._last: dict[Partition, Sample] = {}

    def take(self, partition: Partition, offset: int) -> Sample | None:
        """None at the end of a partition, where nothing came in time, and where the records are gone: what is
        to be done then is decided where offsets are compared, not here.
        """
        known = self._last.get(partition)
        if known is not None and known.begin == offset:
            return known
        try:
            sample = self._taken(partition, offset)
        except Py4JJavaError as error:
            if cause(error)[0] not in _GONE:
                raise
            return None
        if sample is not None:
            self._last[partition] = sample
        return sample

    def forget(self) -> None:
        """The same offsets may be other records now."""
        self._last.clear()

    def _taken(self, partition: Partition, offset: int) -> Sample | None:
        if self._consumer is None:
            self._open()
        java = self._partition(*partition)
        self._consumer.assign(self._list(java))
        ends = self._consumer.endOffsets(self._consumer.assignment(), self._end_patience)
        if offset >= int(ends.get(java)):
            return None
        self._consumer.seek(java, offset)
        before = float(self._read.metricValue())
        if not self._consumer.poll(self._patience).count():
            return None
        end, size = int(self._consumer.position(java)), float(self._read.metricValue()) - before
        return Sample(offset, end, size) if size > 0 and end > offset else None

    def _open(self) -> None:
        properties = self._jvm.java.util.Properties()
        bytes_ = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        ours = {
            "key.deserializer": bytes_,
            "value.deserializer": bytes_,
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "client.id": "headrace-sizes",
            "fetch.max.bytes": str(_SAMPLE_BYTES),
            "max.partition.fetch.bytes": str(_SAMPLE_BYTES),
            # Bytes are counted when a fetch is used up: one poll has to do that.
            "max.poll.records": str(_ALL),
        }
        for name, value in {**self._wish.client, **ours}.items():
            properties.put(name, value)
        self._consumer = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        tags = self._jvm.java.util.HashMap()
        tags.put("client-id", "headrace-sizes")
        name = self._jvm.org.apache.kafka.common.MetricName(
            "bytes-consumed-total", "consumer-fetch-manager-metrics", "", tags
        )
        self._read = self._consumer.metrics().get(name)
        # Looked up once: each part of such a name is a question to Java.
        self._partition = self._jvm.org.apache.kafka.common.TopicPartition
        self._list = self._jvm.java.util.Collections.singletonList
        self._patience = self._jvm.java.time.Duration.ofMillis(_WAIT_MS)
        self._end_patience = self._jvm.java.time.Duration.ofMillis(_END_WAIT_MS)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close(self._jvm.java.time.Duration.ofSeconds(1))
