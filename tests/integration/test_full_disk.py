"""A log directory that has too little room: producers are told to try again, and go on by themselves."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from headrace.broker.storage import disk_space
from headrace.core.ports import Buffer
from headrace.log.os_disk import OsDisk, OsFile
from headrace.testing.cluster import Cluster
from tests.integration.real_client import admin, create, eventually, read

FLOOR = "headrace.log.dir.min.free.bytes"
MORE_THAN_ANY = str(1 << 60)
RETRIES = 5


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(disk_space, "POLL_SECONDS", 0.05)
    with Cluster() as cluster:
        create(cluster.bootstrap, "t", 1)
        yield cluster


def set_floor(cluster: Cluster, value: str) -> None:
    entry = ConfigEntry(FLOOR, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    client = admin(cluster.bootstrap)
    for future in client.incremental_alter_configs([resource]).values():
        future.result()
    is_full = value == MORE_THAN_ANY
    eventually(lambda: cluster.broker.storage.logs.directories[0].is_full is is_full)


def begin(bootstrap: str, *, idempotent: bool = True) -> Callable[[], object]:
    told: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": idempotent, "linger.ms": 0})
    for number in range(3):
        producer.produce("t", b"%d" % number, on_delivery=lambda error, _: told.append(error))
        producer.flush(0.1)

    def finish() -> None:
        assert producer.flush(60) == 0
        assert told == [None] * 3

    return finish


def test_fault_35_a_producer_waits_until_there_is_room(cluster: Cluster) -> None:
    set_floor(cluster, MORE_THAN_ANY)
    finish = begin(cluster.bootstrap)
    metrics = cluster.broker.runtime.metrics
    eventually(lambda: metrics.refused_by_full_disks >= RETRIES)
    assert cluster.broker.partitions.get("t", 0).log.end_offset == 0
    assert cluster.broker.storage.logs.directories[0].is_online
    set_floor(cluster, "0")
    finish()
    assert [message.value() for message in read(cluster.bootstrap, "t", 3)] == [b"0", b"1", b"2"]


def test_fault_35_what_is_not_a_clients_goes_on(cluster: Cluster) -> None:
    """Topics are made and groups commit, on a disk that takes no more of a producer's records."""
    set_floor(cluster, MORE_THAN_ANY)
    create(cluster.bootstrap, "meanwhile", 2)
    assert cluster.broker.partitions.find("meanwhile", 1) is not None
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    (kept,) = consumer.committed([TopicPartition("t", 0)], timeout=30)
    consumer.close()
    assert kept.offset == 0


def test_fault_35_a_partition_whose_files_find_no_room_is_made_when_there_is_some(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory once went offline with all that it held."""
    plain = OsDisk.make_dirs

    def make_dirs(disk: OsDisk, path: str) -> None:
        if "later-" in path:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        plain(disk, path)

    monkeypatch.setattr(OsDisk, "make_dirs", make_dirs)
    broker = cluster.broker
    set_floor(cluster, "0")
    create(cluster.bootstrap, "later", 2)
    eventually(lambda: len(broker.partitions.offline) == 2)
    assert all(directory.is_online for directory in broker.storage.logs.directories)
    finish = begin(cluster.bootstrap)
    monkeypatch.setattr(OsDisk, "make_dirs", plain)
    finish()
    eventually(lambda: not broker.partitions.offline)
    told: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    producer.produce("later", b"x", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(60) == 0
    assert told == [None]


def test_fault_35_a_broker_that_is_alone_refuses_a_topic_and_makes_the_next_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one byte of metadata can be written. The broker once ended."""
    plain = OsFile.pwrite

    def pwrite(file: OsFile, data: Buffer, position: int) -> None:
        if "__cluster_metadata" in os.readlink(f"/proc/self/fd/{file.fileno()}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(file, data, position)

    monkeypatch.setattr(OsFile, "pwrite", pwrite)
    client = admin(cluster.bootstrap)
    (answer,) = client.create_topics([NewTopic("refused", 1)], operation_timeout=5).values()
    with pytest.raises(KafkaException, match="KAFKA_STORAGE_ERROR"):
        answer.result()
    waits = begin(cluster.bootstrap)  # for a producer id, which is written down before it is given
    goes_on = begin(cluster.bootstrap, idempotent=False)
    goes_on()
    monkeypatch.setattr(OsFile, "pwrite", plain)
    waits()
    create(cluster.bootstrap, "taken", 1)
    assert cluster.broker.partitions.find("taken", 0) is not None
    assert all(directory.is_online for directory in cluster.broker.storage.logs.directories)
