"""A small pipeline whose tiers can be tampered with: producers that tell, a topic, a table.

Producers here are ledgers, so that a test decides what was told, what was stored, and when. The clients' own
wrappers are tested in test_producers.py.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from headrace.audit.event import Event
from headrace.audit.ledger import Fields, Ledger
from headrace.audit.settings import AuditSettings
from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.producer import Producer
from headrace.core.ids import TopicPartition
from headrace.protocol.records import NewRecord
from headrace.spark.audit.config import AuditConfig, LakeTable
from headrace.spark.audit.job import Auditor

WINDOW_MS = 1_000
BEGIN_MS = 1_700_000_000_000
PARTITIONS = 2


class Sent(NamedTuple):
    """A record as the application meant it."""

    partition: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def made(count: int, windows: int, seed: int = 0, partitions: int = PARTITIONS) -> list[Sent]:
    """Spread evenly over the windows; some without a key, some tombstones."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        key = None if number % 5 == 0 else b"key-%d" % (number % 97)
        value = None if key is not None and number % 11 == 0 else b"value-%d-%d" % (seed, number)
        moment = BEGIN_MS + number * windows * WINDOW_MS // count
        found.append(Sent(chance.randrange(partitions), moment, key, value))
    return found


async def store(bootstrap: str, topic: str, records: Sequence[Sent], partitions: int = PARTITIONS) -> None:
    async with Cluster(bootstrap) as cluster:
        producer = Producer(cluster)
        for number in range(partitions):
            own = [record for record in records if record.partition == number]
            for at in range(0, len(own), 2_000):
                batch = [
                    NewRecord(key=record.key, value=record.value, timestamp=record.timestamp_ms)
                    for record in own[at : at + 2_000]
                ]
                await producer.send_batch(TopicPartition(topic, number), batch)


async def create(bootstrap: str, topic: str, partitions: int = PARTITIONS) -> None:
    async with Cluster(bootstrap) as cluster:
        # The records say that they are years old: retention would take them away before they are counted.
        keep = {"retention.ms": "-1"}
        await admin.create_topic(cluster, topic, partitions=partitions, configs=keep)


async def send_events(bootstrap: str, topic: str, events: Iterable[Event | bytes]) -> None:
    async with Cluster(bootstrap) as cluster:
        await cluster.topic(topic, create=True)
        producer = Producer(cluster)
        for event in events:
            value = event if isinstance(event, bytes) else event.encode()
            await producer.send(topic, NewRecord(key=b"k", value=value), 0)
        await producer.flush()


class Teller:
    """A producer of the pipeline: what it says it had acknowledged."""

    def __init__(
        self, topic: str, name: str = "teller", server: str = "here", now_ms: int = BEGIN_MS
    ) -> None:
        settings = AuditSettings(name, server, window_seconds=WINDOW_MS / 1000, report_seconds=0.001)
        self.topic = topic
        self.ledger = Ledger(settings, uuid.uuid4().hex, now_ms, fields=lambda fields: fields)
        self.events = [self.ledger.event(now_ms)]

    def acknowledged(self, records: Iterable[Sent]) -> None:
        for record in records:
            told: Fields = (self.topic, record.partition, record.timestamp_ms, record.key, record.value)
            self.ledger.settled(None, told)

    def tell(self, now_ms: int, *, closing: bool = False) -> Event:
        self.events.append(self.ledger.event(now_ms, closing=closing))
        return self.events[-1]


_numbers = itertools.count()


@dataclass
class Pipeline:
    """A topic, its events and verdicts, a lake table, and an auditor over all of it."""

    spark: SparkSession
    bootstrap: str
    directory: Path
    topic: str = field(default_factory=lambda: f"audited-{uuid.uuid4().hex[:8]}-{next(_numbers)}")
    format: str = "parquet"
    partitions: int = PARTITIONS

    def __post_init__(self) -> None:
        asyncio.run(create(self.bootstrap, self.topic, self.partitions))

    @property
    def events_topic(self) -> str:
        return f"{self.topic}-events"

    @property
    def verdicts_topic(self) -> str:
        return f"{self.topic}-verdicts"

    @property
    def table(self) -> LakeTable:
        if self.format == "iceberg":
            return LakeTable("iceberg", f"iceberg.audit.`{self.topic}`")
        return LakeTable(self.format, str(self.directory / "lake"))

    def store(self, records: Sequence[Sent]) -> None:
        asyncio.run(store(self.bootstrap, self.topic, records, self.partitions))

    def tell(self, *events: Event | bytes) -> None:
        asyncio.run(send_events(self.bootstrap, self.events_topic, events))

    def records(self) -> DataFrame:
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
        return reader.option("subscribe", self.topic).load().drop("timestampType")

    def load(self, rows: DataFrame | None = None, mode: str = "append") -> None:
        """What a lake would hold: the records of the topic, or what a test makes of them."""
        frame = self.records() if rows is None else rows
        if self.format == "iceberg":
            writer = frame.writeTo(self.table.location)
            if self.spark.catalog.tableExists(self.table.location):
                writer.append()
            else:
                writer.create()
        else:
            frame.write.format(self.format).mode(mode).save(self.table.location)

    def config(self, *, lake: bool = True, **more: object) -> AuditConfig:
        chosen: dict[str, object] = {
            "kafka": {"bootstrap.servers": self.bootstrap},
            "topics": (self.topic,),
            "state": str(self.directory / "books"),
            "lakes": (self.table,) if lake else (),
            "window_ms": WINDOW_MS,
            "lateness_ms": 0,
            "events_topic": self.events_topic,
            "verdicts_topic": self.verdicts_topic,
            **more,
        }
        return AuditConfig(**chosen)  # type: ignore[arg-type]  # a test names any of its fields

    def auditor(self, *, lake: bool = True, **more: object) -> Auditor:
        return Auditor(self.spark, self.config(lake=lake, **more))
