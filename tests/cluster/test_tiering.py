"""Tiered storage in clusters: leaders that die, and followers that begin where the store ends."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.broker_process import HEADRACE, BrokerProcess, Place
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.cluster_process import HeadraceCluster, eventually
from tests.directories.object_store import running_object_store

pytestmark = pytest.mark.timeout(300)

TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "50000",
    "local.retention.bytes": "100000",
    "min.insync.replicas": "1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceCluster]:
    with running_object_store() as store:
        places = [Place(environment=ENVIRONMENT)] * 3
        directory = tmp_path_factory.mktemp("cluster")
        with HeadraceCluster(directory, 3, broker_properties(store), places=places) as running:
            yield running


def value_of(number: int) -> bytes:
    return b"%08d" % number * 12


def headrace(cluster: HeadraceCluster, *arguments: str) -> str:
    command = [str(HEADRACE), *arguments, "--bootstrap", cluster.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def produce(cluster: HeadraceCluster, topic: str, first: int, count: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "linger.ms": 5,
            "batch.size": 5000,
            "enable.idempotence": True,
        }
    )
    for number in range(first, first + count):
        producer.produce(topic, value_of(number), partition=0)
        producer.poll(0)
    assert producer.flush(90) == 0


def read(cluster: HeadraceCluster, topic: str, count: int) -> list[tuple[int, bytes]]:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": uuid4().hex, "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes]] = []
    until = time.monotonic() + 90
    try:
        while len(found) < count and time.monotonic() < until:
            for message in consumer.consume(500, 0.5):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                offset, value = message.offset(), message.value()
                assert offset is not None
                assert value is not None
                found.append((offset, value))
    finally:
        consumer.close()
    return found


def local_start(broker: BrokerProcess, topic: str) -> int:
    """By what is on the disk; -1 if nothing is."""
    return min((int(path.stem) for path in (broker.log_dir / f"{topic}-0").glob("*.log")), default=-1)


def wait_tiered(cluster: HeadraceCluster, topic: str, at_least: int, *numbers: int) -> None:
    for number in numbers:
        broker = cluster.brokers[number]
        eventually(
            lambda broker=broker: local_start(broker, topic) >= at_least,  # type: ignore[misc]  # its default
            90,
            f"{topic} begins at {at_least} or later on broker {number}",
        )


def test_tier_invariant_05_a_new_leader_goes_on_where_the_store_ends(cluster: HeadraceCluster) -> None:
    cluster.create_topic("led", [[1, 2]], configs=TIERED)
    produce(cluster, "led", 0, 4000)
    wait_tiered(cluster, "led", 2000, 1, 2)  # the follower has read the manifest itself
    cluster.kill(1)
    eventually(lambda: cluster.leader("led") == 2, 60, "broker 2 leads")
    produce(cluster, "led", 4000, 4000)
    wait_tiered(cluster, "led", 6000, 2)
    expected = [(number, value_of(number)) for number in range(8000)]
    assert read(cluster, "led", 8000) == expected
    cluster.restart(1)
    cluster.wait_in_sync("led", 120)
    assert read(cluster, "led", 8000) == expected


def test_tier_invariant_13_a_new_follower_copies_only_what_is_not_in_the_store(
    cluster: HeadraceCluster,
) -> None:
    cluster.create_topic("moved", [[1]], configs=TIERED)
    produce(cluster, "moved", 0, 5000)
    wait_tiered(cluster, "moved", 3000, 1)
    headrace(cluster, "topic", "reassign", "moved", "--brokers", "3")
    eventually(lambda: cluster.partition("moved").replicas == (3,), 120, "broker 3 alone has it")
    eventually(lambda: cluster.leader("moved") == 3, 60, "broker 3 leads")
    assert local_start(cluster.brokers[3], "moved") >= 3000
    produce(cluster, "moved", 5000, 1000)
    assert read(cluster, "moved", 6000) == [(number, value_of(number)) for number in range(6000)]
    said = json.loads(headrace(cluster, "tier", "status", "moved", "--json"))
    assert said[0]["log_start"] == 0
    assert said[0]["end"] == 6000


def test_tier_invariant_14_an_unclean_leader_begins_where_the_store_ends(cluster: HeadraceCluster) -> None:
    settings = {**TIERED, "unclean.leader.election.enable": "true"}
    cluster.create_topic("unclean", [[1, 2]], configs=settings)
    produce(cluster, "unclean", 0, 1000)
    cluster.kill(2)
    produce(cluster, "unclean", 1000, 4000)
    wait_tiered(cluster, "unclean", 3000, 1)
    end = int(json.loads(headrace(cluster, "tier", "status", "unclean", "--json"))[0]["tiered_end"])
    cluster.kill(1)
    cluster.restart(2)
    eventually(lambda: cluster.leader("unclean") == 2, 60, "broker 2 leads, which was not in sync")
    produce(cluster, "unclean", end, 500)
    expected = [(number, value_of(number)) for number in range(end + 500)]
    assert read(cluster, "unclean", end + 500) == expected
    cluster.restart(1)
    cluster.wait_in_sync("unclean", 120)
    assert read(cluster, "unclean", end + 500) == expected


def test_tier_invariant_18_a_fork_is_led_by_any_of_its_replicas(cluster: HeadraceCluster) -> None:
    cluster.create_topic("origin", [[1, 2]], configs=TIERED)
    produce(cluster, "origin", 0, 4000)
    wait_tiered(cluster, "origin", 2000, 1, 2)
    said = headrace(cluster, "topic", "fork", "origin", "forked", "--json")
    end = json.loads(said)["partitions"][0]["offset"]
    expected = [(number, value_of(number)) for number in range(end)]
    assert read(cluster, "forked", end) == expected
    produce(cluster, "forked", end, 2000)
    cluster.wait_in_sync("forked", 120)
    expected += [(number, value_of(number)) for number in range(end, end + 2000)]
    assert read(cluster, "forked", end + 2000) == expected
    leader = cluster.leader("forked")
    assert local_start(cluster.brokers[leader], "forked") >= end
    cluster.kill(leader)
    eventually(lambda: cluster.leader("forked") not in (leader, -1), 60, "another leads")
    assert read(cluster, "forked", end + 2000) == expected
    produce(cluster, "forked", end + 2000, 1000)
    cluster.restart(leader)
    cluster.wait_in_sync("forked", 120)
    assert len(read(cluster, "forked", end + 3000)) == end + 3000
    assert read(cluster, "origin", 4000) == [(number, value_of(number)) for number in range(4000)]
