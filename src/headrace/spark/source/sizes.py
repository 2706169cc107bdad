"""How large records are, by samples: a fetch of some kilobytes where a batch begins and where it would end.

Brokers do not tell how many bytes lie between two offsets, and to read a batch twice costs twice. Sizes are
those of whole records, with keys and headers, after decompression: what the tasks have to hold.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.limits import Partition, records_for, within
from headrace.spark.source.options import Wish

_SAMPLE_BYTES: Final = 64 * 1024
#: Of a batch with more partitions, those with the largest backlogs are looked at.
_PARTITIONS: Final = 16
_WAIT_MS: Final = 2_000
_ALL: Final = 1_000_000


class Sampler:
    """One consumer, which belongs to no group. Only the thread of the query may use it."""

    def __init__(self, spark: SparkSession, wish: Wish) -> None:
        self._jvm: Any = spark._jvm
        self._wish = wish
        self._consumer: Any = None
        self._read: Any = None
        self._samples: dict[Partition, tuple[int, float]] = {}
        """The last of each partition: where it was taken, bytes for each offset."""

    def limited(
        self, begin: Offsets, end: Offsets, most_bytes: int
    ) -> tuple[Offsets, dict[Partition, float]]:
        """The end of a batch of about `most_bytes`, and the sizes that this rests on.

        Sizes where the batch begins give a first guess. Those where it would end are looked at too, and the
        mean of both counts: so records that grow along the way are noticed. The next batch begins there.
        """
        at_begin = self._sizes(begin, begin, end)
        most = records_for(begin, end, most_bytes, at_begin)
        if most is None and at_begin:
            return end, at_begin
        guess = end if most is None else within(begin, end, most)
        at_end = self._sizes(guess, begin, end)
        mean = {each: (size + at_end.get(each, size)) / 2 for each, size in at_begin.items()}
        most = records_for(begin, end, most_bytes, mean)
        return (end if most is None else within(begin, end, most)), mean

    def _sizes(self, where: Offsets, begin: Offsets, end: Offsets) -> dict[Partition, float]:
        backlog = {each: end[each] - begin[each] for each in end if end[each] > begin[each]}
        largest = sorted(backlog, key=lambda each: (-backlog[each], each))[:_PARTITIONS]
        found = {}
        for partition in largest:
            at = where[partition]
            if at >= end[partition]:
                continue
            known = self._samples.get(partition)
            if known is None or known[0] != at:
                size = self._sample(partition, at)
                if size is None:
                    continue
                known = self._samples[partition] = (at, size)
            found[partition] = known[1]
        return found

    def _sample(self, partition: Partition, offset: int) -> float | None:
        """None where nothing came in time."""
        if self._consumer is None:
            self._open()
        java = self._jvm.org.apache.kafka.common.TopicPartition(*partition)
        only = self._jvm.java.util.Collections.singletonList(java)
        self._consumer.assign(only)
        self._consumer.seek(java, offset)
        before = float(self._read.metricValue())
        if not self._consumer.poll(self._jvm.java.time.Duration.ofMillis(_WAIT_MS)).count():
            return None
        offsets = int(self._consumer.position(java)) - offset
        size = (float(self._read.metricValue()) - before) / max(1, offsets)
        return size if size > 0 else None

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

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close(self._jvm.java.time.Duration.ofSeconds(1))
