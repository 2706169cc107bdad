"""Offsets of groups with real clients: read back, kept over a restart, gone with their topic, expired."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.cimpl import KafkaError

from headrace.testing.cluster import Cluster
from tests.integration.real_client import admin, create, send

with warnings.catch_warnings():
    # The library reads its schemas by a function that Python has deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer
    from kafka.structs import OffsetAndMetadata
    from kafka.structs import TopicPartition as PythonTopicPartition

SECONDS = 20.0
TOPIC = "orders"


def consumer_of(bootstrap: str, group_id: str, **settings: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group_id, "enable.auto.commit": False, **settings}
    )


def commit(bootstrap: str, group_id: str, *rows: TopicPartition) -> None:
    with closing(consumer_of(bootstrap, group_id)) as consumer:
        consumer.commit(offsets=list(rows), asynchronous=False)


def committed(
    bootstrap: str, group_id: str, *partitions: int, topic: str = TOPIC
) -> list[tuple[int, str | None]]:
    with closing(consumer_of(bootstrap, group_id)) as consumer:
        asked = [TopicPartition(topic, partition) for partition in partitions]
        return [(row.offset, row.metadata) for row in consumer.committed(asked, SECONDS)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def test_offsets_and_their_metadata_come_back_after_a_restart(tmp_path: Path) -> None:
    note = "naïve \U0001f600"
    with Cluster(directory=tmp_path) as cluster:
        create(cluster.bootstrap, TOPIC, 3)
        commit(
            cluster.bootstrap,
            "g",
            TopicPartition(TOPIC, 0, 5, note),
            TopicPartition(TOPIC, 2, 7),
        )
        commit(cluster.bootstrap, "g", TopicPartition(TOPIC, 2, 8))
        assert [offset for offset, _ in committed(cluster.bootstrap, "g", 0, 1, 2)] == [5, -1001, 8]
    with Cluster(directory=tmp_path) as cluster:
        assert committed(cluster.bootstrap, "g", 0) == [(5, note)]
        assert [offset for offset, _ in committed(cluster.bootstrap, "g", 1, 2)] == [-1001, 8]
        assert [offset for offset, _ in committed(cluster.bootstrap, "other", 0)] == [-1001]


def test_a_consumer_goes_on_where_its_group_was(headrace_cluster: Cluster) -> None:
    bootstrap = headrace_cluster.bootstrap
    create(bootstrap, TOPIC)
    send(bootstrap, TOPIC, [b"a", b"b", b"c"])
    commit(bootstrap, "g", TopicPartition(TOPIC, 0, 2))
    with closing(consumer_of(bootstrap, "g")) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.value() == b"c"


def test_kafka_python_reads_what_librdkafka_committed_and_back(headrace_cluster: Cluster) -> None:
    bootstrap = headrace_cluster.bootstrap
    create(bootstrap, TOPIC, 2)
    commit(bootstrap, "g", TopicPartition(TOPIC, 0, 11, "from C"))
    first, second = PythonTopicPartition(TOPIC, 0), PythonTopicPartition(TOPIC, 1)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id="g", enable_auto_commit=False)
    with closing(consumer):
        consumer.assign([first, second])
        assert consumer.committed(first) == 11
        # confluent-kafka sends the zero that ends a string of C as well.
        assert consumer.committed(first, metadata=True).metadata == "from C\0"
        assert consumer.committed(second) is None
        # It also reads on until it finds one.
        consumer.commit({second: OffsetAndMetadata(22, "from Python\0", -1)})
        assert consumer.committed(second, metadata=True).metadata == "from Python\0"
    assert committed(bootstrap, "g", 0, 1) == [(11, "from C"), (22, "from Python")]


def test_an_admin_lists_and_alters_offsets(headrace_cluster: Cluster) -> None:
    bootstrap = headrace_cluster.bootstrap
    create(bootstrap, TOPIC, 2)
    commit(bootstrap, "g", TopicPartition(TOPIC, 0, 1), TopicPartition(TOPIC, 1, 2))
    client = admin(bootstrap)
    change = ConsumerGroupTopicPartitions("g", [TopicPartition(TOPIC, 1, 77)])
    client.alter_consumer_group_offsets([change])["g"].result(SECONDS)
    asked = [ConsumerGroupTopicPartitions("g")]
    listed = client.list_consumer_group_offsets(asked, require_stable=True)["g"].result(SECONDS)
    assert {row.partition: row.offset for row in listed.topic_partitions} == {0: 1, 1: 77}


def test_refusals_reach_the_client(headrace_cluster: Cluster) -> None:
    bootstrap = headrace_cluster.bootstrap
    create(bootstrap, TOPIC)
    with closing(consumer_of(bootstrap, "g")) as consumer:
        with pytest.raises(KafkaException) as unknown:
            consumer.commit(offsets=[TopicPartition(TOPIC, 9, 1)], asynchronous=False)
        assert unknown.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        with pytest.raises(KafkaException) as too_large:
            consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1, "x" * 5000)], asynchronous=False)
        assert too_large.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE


def test_offsets_go_with_their_topic(headrace_cluster: Cluster) -> None:
    bootstrap = headrace_cluster.bootstrap
    create(bootstrap, TOPIC)
    create(bootstrap, "kept")
    commit(bootstrap, "g", TopicPartition(TOPIC, 0, 5), TopicPartition("kept", 0, 6))
    client = admin(bootstrap)  # its futures end with it
    client.delete_topics([TOPIC])[TOPIC].result(SECONDS)
    create(bootstrap, TOPIC)
    assert [offset for offset, _ in committed(bootstrap, "g", 0)] == [-1001]
    assert [offset for offset, _ in committed(bootstrap, "g", 0, topic="kept")] == [6]


def test_offsets_expire_and_their_group_with_them() -> None:
    """A minute is the shortest retention, so the commit is written as one of an hour ago."""
    properties = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "100"}
    with Cluster(properties) as cluster:
        create(cluster.bootstrap, TOPIC)
        commit(cluster.bootstrap, "old", TopicPartition(TOPIC, 0, 5))
        commit(cluster.bootstrap, "new", TopicPartition(TOPIC, 0, 6))

        def age() -> None:
            for _, shard in cluster.broker.coordinators.groups.loaded():
                stored = shard.offsets.table.get("old", TOPIC, 0)
                if stored is not None:
                    stored.committed_at_ms -= 3_600_000

        cluster.call(age)
        wait_until(lambda: committed(cluster.bootstrap, "old", 0)[0][0] == -1001)
        assert committed(cluster.bootstrap, "new", 0)[0][0] == 6
        client = admin(cluster.bootstrap)
        groups = client.list_consumer_groups().result(SECONDS).valid
        assert [group.group_id for group in groups] == ["new"]
