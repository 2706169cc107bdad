"""Compaction by a real process beside a real broker: it happens, survives a kill, ends with the broker."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import ResourceType

from headrace.broker.storage.cleaner_pool import Processes
from headrace.testing.cluster import Cluster
from tests.integration.real_client import create, set_config

SECONDS = 30.0
TOPIC = "table"
QUICK = {"log.cleaner.backoff.ms": "50", "log.flush.offset.checkpoint.interval.ms": "100"}


def make_topic(bootstrap: str) -> None:
    config = {"cleanup.policy": "compact", "segment.bytes": "1048576", "internal.segment.bytes": "20000"}
    create(bootstrap, TOPIC, config=config)


def fill(bootstrap: str, records: int, keys: int, size: int = 100) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 50})
    for number in range(records):
        producer.produce(TOPIC, key=b"k%d" % (number % keys), value=b"%08d" % number + bytes(size))
    assert producer.flush(SECONDS) == 0


def read_all(bootstrap: str, records: int) -> list[tuple[int, bytes, int]]:
    """(offset, key, number) of everything up to the offset `records`."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "any", "enable.auto.commit": False})
    found: list[tuple[int, bytes, int]] = []
    try:
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and (not found or found[-1][0] < records - 1):
            for message in consumer.consume(500, 0.2):
                assert message.error() is None
                offset, key, value = message.offset(), message.key(), message.value()
                assert offset is not None
                assert key is not None
                assert value is not None
                found.append((offset, key, int(value[:8])))
    finally:
        consumer.close()
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def clean_until(cluster: Cluster) -> int:
    """As the checkpoint says, in Kafka's own format."""
    files = Path(cluster.directory).rglob("cleaner-offset-checkpoint")
    found = [line.split() for file in files for line in file.read_text().splitlines()]
    return max((int(fields[2]) for fields in found if fields[:1] == [TOPIC]), default=0)


def busy_workers(cluster: Cluster) -> list[Any]:
    workers = cluster.broker.storage.cleaning._workers
    assert isinstance(workers, Processes)
    return list(workers._busy)


def test_a_topic_shrinks_to_its_keys_and_stays_so_after_a_restart(tmp_path: Path) -> None:
    with Cluster(QUICK, directory=tmp_path) as cluster:
        make_topic(cluster.bootstrap)
        fill(cluster.bootstrap, 3000, 10)
        wait_until(lambda: clean_until(cluster) > 2000)
        found = read_all(cluster.bootstrap, 3000)
        assert len(found) < 1000
        assert all(offset == number for offset, _, number in found)
        assert {key: number for _, key, number in found} == {b"k%d" % key: 2990 + key for key in range(10)}
        counted = cluster.broker.runtime.metrics.cleaner
        assert counted.bytes_read > counted.bytes_written > 0
    with Cluster(QUICK, directory=tmp_path) as cluster:
        assert clean_until(cluster) > 2000
        assert read_all(cluster.bootstrap, 3000)[-1][2] == 2999


def test_a_killed_worker_is_replaced(tmp_path: Path) -> None:
    slow = {**QUICK, "log.cleaner.io.max.bytes.per.second": "1000"}
    with Cluster(slow, directory=tmp_path) as cluster:
        make_topic(cluster.bootstrap)
        fill(cluster.bootstrap, 2000, 5)
        wait_until(lambda: bool(busy_workers(cluster)))
        # For the next one: this one goes on at its pace, and cannot end before it is killed.
        set_config(cluster.bootstrap, ResourceType.BROKER, "1", "log.cleaner.io.max.bytes.per.second", "1e9")
        first = busy_workers(cluster)[0].pid
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: cluster.broker.runtime.metrics.cleaner.lost_workers == 1)
        wait_until(lambda: clean_until(cluster) > 1000)
        assert {number for _, _, number in read_all(cluster.bootstrap, 2000)} >= set(range(1995, 2000))


def test_a_worker_ends_with_its_broker(tmp_path: Path) -> None:
    slow = {**QUICK, "log.cleaner.io.max.bytes.per.second": "1000"}
    with Cluster(slow, directory=tmp_path) as cluster:
        make_topic(cluster.bootstrap)
        fill(cluster.bootstrap, 2000, 5)
        wait_until(lambda: bool(busy_workers(cluster)))
        pid = busy_workers(cluster)[0].pid
    assert not Path(f"/proc/{pid}").exists()


def test_without_the_cleaner_nothing_is_compacted(tmp_path: Path) -> None:
    with Cluster({**QUICK, "log.cleaner.enable": "false"}, directory=tmp_path) as cluster:
        make_topic(cluster.bootstrap)
        fill(cluster.bootstrap, 1000, 5)
        time.sleep(1.5)
        assert clean_until(cluster) == 0
        assert len(read_all(cluster.bootstrap, 1000)) == 1000
