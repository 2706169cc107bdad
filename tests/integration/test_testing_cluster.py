"""`headrace.testing`: a broker in the test's process, used by a real client."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.core.errors import ConfigError, HeadraceError
from headrace.testing.cluster import Cluster
from tests.host import Stopwatch


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(10) == 0
    assert not failures


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline:
        for message in consumer.consume(count, 0.2):
            assert message.error() is None
            values.append(message.value() or b"")
    consumer.close()
    return values


def test_a_record_comes_back(headrace_cluster: Cluster) -> None:
    produce(headrace_cluster.bootstrap, "orders", [b"one", b"two"])
    assert consume(headrace_cluster.bootstrap, "orders", 2) == [b"one", b"two"]


def test_it_starts_in_under_half_a_second() -> None:
    with Cluster():
        pass  # what is imported once is not part of the promise
    times = []
    for _ in range(3):
        watch = Stopwatch()
        with Cluster():
            times.append(watch.seconds)
    assert min(times) < 0.5


def test_nothing_is_left_behind() -> None:
    with Cluster() as cluster:
        directory = cluster.directory
        assert os.path.isdir(directory)
    assert not os.path.exists(directory)
    with pytest.raises(HeadraceError, match="not running"):
        _ = cluster.bootstrap


def test_data_survives_a_restart(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path) as cluster:
        produce(cluster.bootstrap, "kept", [b"a", b"b"])
        cluster.restart()
        produce(cluster.bootstrap, "kept", [b"c"])
        assert consume(cluster.bootstrap, "kept", 3) == [b"a", b"b", b"c"]


def test_a_wrong_property_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Cluster({"num.partitions": "none"}, directory=tmp_path).start()


@pytest.mark.parametrize("brokers", [1, 3])
def test_an_unknown_property_is_refused_and_not_passed_over(brokers: int) -> None:
    cluster = Cluster({"num.partitons": "3"}, brokers=brokers)
    with pytest.raises(ConfigError, match=r"num\.partitons; did you mean num\.partitions"):
        cluster.start()
    assert not cluster.directory


def test_two_brokers_cannot_share_a_directory(tmp_path: Path) -> None:
    with Cluster(directory=tmp_path), pytest.raises(HeadraceError, match=str(tmp_path)):
        Cluster(directory=tmp_path).start()
