"""The offsets of all queries of one configuration in one consumer group, so that whatever shows the lag of
groups shows theirs. The checkpoints are the truth; the group follows them and is never ahead of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import SparkSession

from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.commits import GroupCommits
from headrace.spark.source.options import Wish

_FLUSH_SECONDS: Final = 15.0


class GroupProgress:
    def __init__(self, spark: SparkSession, kafka: KafkaProperties, group: str) -> None:
        self._spark = spark
        self._kafka = kafka
        self._group = group
        self._by_table: dict[str, Offsets] = {}
        self._offsets: Offsets = {}
        self._ids: dict[str, str] = {}
        self._brokers: Brokers | None = None
        self._commits: GroupCommits | None = None

    def loaded(self, table: str, topic: str, topic_id: str | None, offsets: Offsets) -> None:
        """Everything before these is in the table. `topic_id` is None where brokers have no ids."""
        if self._brokers is None:
            self._brokers = Brokers(self._spark, Wish((topic,), self._kafka, self._group))
            self._commits = GroupCommits(self._brokers, self._group)
        self._brokers.add(topic)
        self._by_table[table] = offsets
        self._offsets = slowest(self._by_table.values())
        if topic_id is not None:
            self._ids = {**self._ids, topic: topic_id}

    def tell(self) -> None:
        """Often: nothing happens without news. Raises if the brokers refuse the first commit."""
        if self._commits is not None:
            self._commits.done(self._offsets, self._ids)

    def close(self) -> None:
        if self._commits is not None:
            self._commits.flush(_FLUSH_SECONDS)
            self._commits.close()
        if self._brokers is not None:
            self._brokers.close()


def slowest(tables: Iterable[Offsets]) -> Offsets:
    """What all tables of a topic have."""
    found: Offsets = {}
    for offsets in tables:
        for partition, offset in offsets.items():
            found[partition] = min(offset, found.get(partition, offset))
    return found
