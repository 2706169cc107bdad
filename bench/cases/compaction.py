"""Compaction: how fast a log is cleaned, and what a producer notices of it."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from bench import load_generator
from bench.case import Case, Sample, Side
from bench.load_generator import LoadFailed
from bench.process_cost import Meter, wait_until_quiet
from bench.quantity import Goal, Quantity, throughput_ratio

BROKER_ID = "1"
CHECKPOINT = "cleaner-offset-checkpoint"
SEGMENT_BYTES = 32 * 1024 * 1024
LIMIT_S = 600.0
POLL_S = 0.01
SETTLE_S = 3.0
"""Sealed segments are synced meanwhile, which is no part of cleaning them."""


def alter(side: Side, kind: ResourceType, name: str, settings: Mapping[str, str]) -> None:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": side.broker.bootstrap, "log_level": 2})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(30)


def segments(side: Side, topic: str) -> list[Path]:
    return sorted((side.broker.log_directory / f"{topic}-0").glob("*.log"))


def clean_until(side: Side, topic: str) -> int:
    """Up to which offset the topic is clean, as the broker's own checkpoint says."""
    try:
        lines = (side.broker.log_directory / CHECKPOINT).read_text().splitlines()
    except FileNotFoundError:
        return 0
    rows = [line.split() for line in lines[2:]]
    return max((int(row[2]) for row in rows if row[:2] == [topic, "0"]), default=0)


class DirtyTopic:
    """A compacted topic that nobody cleans before it is told to."""

    def __init__(self, side: Side, purpose: str, *, size: int, records: int, keys: int) -> None:
        self._side = side
        self.name = side.fresh_name(purpose)
        side.topics.create(
            self.name,
            config={
                "cleanup.policy": "compact",
                "segment.bytes": str(SEGMENT_BYTES),
                "min.cleanable.dirty.ratio": "1.0",
            },
        )
        self._fill(size, records, keys)
        wait_until_quiet(side.broker.pid)
        time.sleep(SETTLE_S)
        *sealed, active = segments(side, self.name)
        self.sealed_bytes = sum(path.stat().st_size for path in sealed)
        self._end = int(active.stem)

    def _fill(self, size: int, records: int, keys: int) -> None:
        drawn = random.Random(1)
        values = [drawn.randbytes(size) for _ in range(100)]
        producer = Producer(
            {
                "bootstrap.servers": self._side.broker.bootstrap,
                "linger.ms": 5,
                "queue.buffering.max.messages": 200_000,
            }
        )
        for number in range(records):
            key = b"key-%012d" % drawn.randrange(keys)
            while True:
                try:
                    producer.produce(self.name, values[number % 100], key)
                    break
                except BufferError:
                    producer.poll(0.05)
            if number % 1000 == 0:
                producer.poll(0)
        if producer.flush(LIMIT_S):
            raise LoadFailed(f"{self._side.name} did not take all records of {self.name}")

    def release(self) -> None:
        """From now on it may be cleaned."""
        alter(self._side, ResourceType.TOPIC, self.name, {"min.cleanable.dirty.ratio": "0.001"})

    @property
    def is_clean(self) -> bool:
        return clean_until(self._side, self.name) >= self._end

    def wait_clean(self) -> None:
        give_up = time.monotonic() + LIMIT_S
        while not self.is_clean:
            if time.monotonic() > give_up:
                raise LoadFailed(f"{self._side.name} did not clean {self.name}")
            time.sleep(POLL_S)

    @property
    def left_bytes(self) -> int:
        return sum(path.stat().st_size for path in segments(self._side, self.name)[:-1])


def make_cleaner_prompt(side: Side) -> None:
    """Both look for work every tenth of a second instead of every 15."""
    alter(side, ResourceType.BROKER, BROKER_ID, {"log.cleaner.backoff.ms": "100"})
    time.sleep(2.0)


class CleaningSpeed(Case):
    """From the word that a log may be cleaned to the checkpoint that says it is."""

    group = "compaction"
    quantities = (
        throughput_ratio("mb_per_s", "MB/s", 0.5),
        Quantity("left_mb", "left of it", "MB"),
    )

    def __init__(self, name: str, title: str, *, size: int, records: int, keys: int) -> None:
        self.name = name
        self.title = title
        self._size = size
        self._records = records
        self._keys = keys

    def prepare(self, side: Side) -> None:
        make_cleaner_prompt(side)

    def run(self, side: Side) -> Sample:
        records = side.scale.count(self._records, 2 * SEGMENT_BYTES // self._size)
        topic = DirtyTopic(side, self.name, size=self._size, records=records, keys=self._keys)
        with Meter(side.broker.pid) as meter:
            began = time.monotonic()
            topic.release()
            topic.wait_clean()
            seconds = time.monotonic() - began
        left = topic.left_bytes
        if left > topic.sealed_bytes * 0.9:
            raise LoadFailed(f"{side.name} left {left} of {topic.sealed_bytes} bytes of {topic.name}")
        side.remove_topic(topic.name)
        return {
            "mb_per_s": topic.sealed_bytes / seconds / 1e6,
            "left_mb": left / 1e6,
            "sealed_mb": topic.sealed_bytes / 1e6,
            "seconds": seconds,
            "broker_cpu_s": meter.cpu_s,
            "noise_cores": meter.noise_cores,
        }


class BesideCleaning(Case):
    """A producer of 1,000 records a second, alone and beside the cleaning of another topic."""

    name = "compaction-latency"
    group = "compaction"
    title = "a producer beside the cleaner"
    quantities = (
        Quantity("p99_ratio", "producer p99 beside it, to alone", "", Goal.RATIO_AT_MOST, 1.0),
        Quantity("p99_ms", "producer p99", "ms"),
        Quantity("alone_p99_ms", "producer p99 alone", "ms"),
    )
    RATE = 1000
    ALONE_S = 10
    RECORDS = 800_000
    SIZE = 1024
    KEYS = 100_000

    def prepare(self, side: Side) -> None:
        make_cleaner_prompt(side)
        topic = side.kept["compaction-beside"] = side.fresh_name("compaction-beside")
        side.topics.create(topic)

    def run(self, side: Side) -> Sample:
        records = side.scale.count(self.RECORDS, 2 * SEGMENT_BYTES // self.SIZE)
        topic = DirtyTopic(side, self.name, size=self.SIZE, records=records, keys=self.KEYS)
        with Meter(side.broker.pid) as meter:
            alone = self._paced(side, self.RATE * side.scale.count(self.ALONE_S)).result()
        producer = self._paced(side, sys.maxsize)
        try:
            topic.release()
            topic.wait_clean()
        finally:
            producer.stop()
        during = producer.result()
        side.remove_topic(topic.name)
        return {
            "p99_ratio": during.p99_us / alone.p99_us,
            "p99_ms": during.p99_us / 1e3,
            "p50_ms": during.p50_us / 1e3,
            "max_ms": during.max_us / 1e3,
            "alone_p99_ms": alone.p99_us / 1e3,
            "alone_p50_ms": alone.p50_us / 1e3,
            "records_during": during.records,
            "noise_cores": meter.noise_cores,
        }

    def finish(self, side: Side) -> None:
        if topic := side.kept.pop("compaction-beside", None):
            side.remove_topic(topic)

    def _paced(self, side: Side, records: int) -> load_generator.Running:
        return load_generator.start_producer(
            side.broker.bootstrap,
            side.kept["compaction-beside"],
            records=records,
            rate=self.RATE,
            properties={"acks": 1, "linger.ms": 0, "socket.nagle.disable": "true"},
        )


CASES: list[Case] = [
    CleaningSpeed("compaction-1k", "cleaning, records of 1 KB", size=1024, records=400_000, keys=100_000),
    CleaningSpeed("compaction-100", "cleaning, records of 100 B", size=100, records=2_500_000, keys=400_000),
    BesideCleaning(),
]
