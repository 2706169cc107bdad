"""What a sink is given: records of exact offsets as a frame, and a way for those that it cannot take."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from headrace.connect.api import Place, Sink
from headrace.connect.config import Config
from headrace.connect.converters import Unconvertible, converter_of
from headrace.connect.records import Rejected, SinkRecord
from headrace.core.ids import TopicPartition
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.source.options import Wish
from headrace.spark.source.shaping import shape

REJECTED: Final = "topic string, partition int, offset bigint, reason string"

Reject = Callable[["SinkBatch", "Iterable[Rejected] | DataFrame"], None]


class SinkBatch:
    """See `headrace.connect.api.Batch`."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaProperties,
        config: Config,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        ends: Mapping[TopicPartition, int],
        reject: Reject,
    ) -> None:
        self._spark = spark
        self._kafka = kafka
        self._config = config
        self._ranges = dict(ranges)
        self._ends = dict(ends)
        self._reject = reject

    @property
    def spark(self) -> SparkSession:
        return self._spark

    @property
    def ranges(self) -> Mapping[TopicPartition, tuple[int, int]]:
        return self._ranges

    @property
    def ends(self) -> Mapping[TopicPartition, int]:
        return self._ends

    @property
    def number(self) -> int:
        return sum(self._ends.values())

    @cached_property
    def frame(self) -> DataFrame:
        topics = sorted({partition.topic for partition in self._ranges})
        options = Wish(tuple(topics), self._kafka).connector()
        del options["subscribe"]
        assigned: dict[str, list[int]] = {}
        first: dict[str, dict[str, int]] = {}
        end: dict[str, dict[str, int]] = {}
        for partition, (begins, ends) in self._ranges.items():
            assigned.setdefault(partition.topic, []).append(partition.partition)
            first.setdefault(partition.topic, {})[str(partition.partition)] = begins
            end.setdefault(partition.topic, {})[str(partition.partition)] = ends
        bounds = {
            "assign": json.dumps(assigned),
            "startingOffsets": json.dumps(first),
            "endingOffsets": json.dumps(end),
        }
        frame = self._spark.read.format("kafka").options(**options, **bounds).load()
        return shape(frame, None, undecodable="keep", keep_value=True)

    def of_topics(self, topics: Collection[str]) -> SinkBatch:
        ranges = {
            partition: range_ for partition, range_ in self._ranges.items() if partition.topic in topics
        }
        return SinkBatch(self._spark, self._kafka, self._config, ranges, self._ends, self._reject)

    def reject(self, rejected: Iterable[Rejected] | DataFrame) -> None:
        self._reject(self, rejected)

    def put(self, sink: type[Sink]) -> None:
        dead: frozenset[Place] = frozenset()
        while True:
            found = self.frame.mapInArrow(_putter(sink, self._config, dead), REJECTED).collect()
            if not found:
                return
            self.reject([Rejected(row.topic, row.partition, row.offset, row.reason) for row in found])
            if not sink.letters_first:
                return
            dead |= {(row.topic, row.partition, row.offset) for row in found}


class _Refusals(NamedTuple):
    rows: list[Rejected]


def _putter(
    sink: type[Sink], config: Config, dead: frozenset[Place]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Runs in a task."""

    def put(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        connector = sink(config)
        connector.dead = dead
        try:
            refused = connector.put(records_of(batches, config, connector.unreadable)) or ()
            every = (*connector.unreadable, *refused)
            rejected = [each for each in every if (each.topic, each.partition, each.offset) not in dead]
        finally:
            connector.stop()
        if rejected:
            columns = list(zip(*rejected, strict=True))
            types = (pa.string(), pa.int32(), pa.int64(), pa.string())
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, list(Rejected._fields))

    return put


def records_of(batches: Iterable[Any], config: Config, rejected: list[Rejected]) -> Iterator[SinkRecord]:
    """As the converters read them; `rejected` takes those that they do not."""
    keys = converter_of(config.given, "key.converter")
    values = converter_of(config.given, "value.converter")
    for batch in batches:
        # Row by row: a task that is given records in Python wants Python's values.
        for row in batch.to_pylist():
            try:
                key, value = keys.from_bytes(row["key"]), values.from_bytes(row["value"])
            except Unconvertible as error:
                rejected.append(Rejected(row["topic"], row["partition"], row["offset"], str(error)))
                continue
            yield SinkRecord(
                row["topic"],
                row["partition"],
                row["offset"],
                key,
                value,
                [(each["key"], each["value"]) for each in row["headers"] or ()],
                int(row["timestamp"].timestamp() * 1000),
            )
