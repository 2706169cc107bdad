"""`headrace.testing`: a broker in the test's process, used by a real client."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.core.errors import ConfigError, HeadraceError
from headrace.testing import Cluster
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


@pytest.fixture
def headrace_properties() -> dict[str, str]:
    return {"num.partitions": "3"}


def test_a_module_may_have_properties_of_its_own(headrace_cluster: Cluster) -> None:
    headrace_cluster.create_topic("parted")
    producer = Producer(headrace_cluster.client_config)
    for partition in (2, 0, 1):
        producer.produce("parted", b"%d" % partition, key=b"k", headers={"a": b"b"}, partition=partition)
    assert producer.flush(10) == 0
    found = headrace_cluster.records("parted")
    assert [(each.partition, each.offset, each.key, each.value) for each in found] == [
        (number, 0, b"k", b"%d" % number) for number in range(3)
    ]
    assert found[0].headers == (("a", b"b"),)


async def test_a_test_with_a_loop_of_its_own_reads_records_too(headrace_cluster: Cluster) -> None:
    headrace_cluster.create_topic("empty", 1, configs={"cleanup.policy": "compact"})
    assert headrace_cluster.records("empty") == []


def test_a_topic_that_exists_is_told(headrace_cluster: Cluster) -> None:
    headrace_cluster.create_topic("twice")
    with pytest.raises(HeadraceError, match="exists"):
        headrace_cluster.create_topic("twice")


def test_aborted_records_are_not_among_the_records(headrace_cluster: Cluster) -> None:
    producer = Producer({**headrace_cluster.client_config, "transactional.id": "t"})
    producer.init_transactions(30)
    for value, ends in ((b"no", producer.abort_transaction), (b"yes", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("ledger", value, partition=0)
        producer.flush(30)
        ends()
    assert [record.value for record in headrace_cluster.records("ledger")] == [b"yes"]


def test_a_secure_cluster_makes_and_reads_topics(headrace_secure: Cluster) -> None:
    headrace_secure.create_topic("orders", 2)
    producer = Producer(headrace_secure.client_config)
    producer.produce("orders", b"tea", partition=1)
    assert producer.flush(30) == 0
    assert [(each.partition, each.value) for each in headrace_secure.records("orders")] == [(1, b"tea")]


def test_a_group_does_not_wait_for_members_that_never_come(headrace_cluster: Cluster) -> None:
    """Kafka's three seconds would be most of the time that a suite takes."""
    produce(headrace_cluster.bootstrap, "orders", [b"one"])
    assert headrace_cluster.broker.runtime.config.group_initial_rebalance_delay_ms == 0
    consumer = Consumer(
        {**headrace_cluster.client_config, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"one"
    consumer.close()


def test_a_cluster_says_what_it_is() -> None:
    cluster = Cluster()
    assert repr(cluster) == "<Cluster: a broker, not running>"
    with cluster:
        assert repr(cluster) == f"<Cluster: a broker at {cluster.bootstrap}>"
    assert repr(Cluster(brokers=3, secure=True)) == "<Cluster: 3 brokers, not running, secure>"
