"""What lies between two offsets as a frame, and what tasks write beside their records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord
from headrace.spark.connector import reader_settings
from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.mirror.position import Position
from headrace.spark.mirror.translation import Place, pieces_of, record_of
from headrace.spark.sink.landing import Landed


def records_of(spark: SparkSession, kafka: Mapping[str, str], begin: Offsets, end: Offsets) -> DataFrame:
    """Of these partitions, as the connector gives them; only committed ones."""
    assigned: dict[str, list[int]] = {}
    for topic, partition in sorted(begin):
        assigned.setdefault(topic, []).append(partition)
    options = {
        **reader_settings(kafka),
        "assign": json.dumps(assigned),
        "startingOffsets": offsets_json(begin),
        "endingOffsets": offsets_json(end),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    return spark.read.format("kafka").options(**options).load()


@dataclass(frozen=True)
class Pieces:
    """What each task writes beside its records: where they are. Sent to tasks."""

    translations: str
    places: Mapping[str, tuple[str, str]]
    """By the target's topic: the source's, and its id."""

    def __call__(self, landed: Landed) -> Iterator[tuple[TopicPartition, NewRecord]]:
        now_ms = int(time.time() * 1000)
        for target, runs in landed.items():
            topic, topic_id = self.places[target.topic]
            for piece in pieces_of(Place(topic, topic_id, target.partition), runs):
                yield TopicPartition(self.translations, 0), record_of(piece, now_ms)


def pieces_for(translations: str, position: Position) -> Pieces:
    return Pieces(translations, {each.target: (name, each.id) for name, each in position.topics.items()})
