"""Apache's Connect and MirrorMaker 2, unchanged, on Headrace, while workers and brokers are killed.

`--target kafka` does the same on Apache Kafka. What MirrorMaker 2 makes of committed offsets is the same
there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.compatibility.connect_scene import LINES, MIRRORED, ORDERS, Scene, eventually

ROUNDS = int(os.environ.get("HEADRACE_CONNECT_ROUNDS", "1"))
LINES_AT_ONCE = 2_000
ORDERS_AT_ONCE = 100
RETENTION = "86400000"
_ANY: Any = None  # confluent-kafka's types do not know that a filter may leave a name out.
EVERYTHING = AclBindingFilter(
    ResourceType.ANY,
    _ANY,
    ResourcePatternType.ANY,
    _ANY,
    _ANY,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@pytest.mark.timeout(600 + 300 * ROUNDS)
def test_files_and_a_mirror_survive_kills_of_workers_and_brokers(target: str, tmp_path: Path) -> None:
    with Scene(target, tmp_path) as scene:
        _prepare(scene)
        scene.run_files()
        scene.run_mirror()
        scene.write_lines(LINES_AT_ONCE)
        _mirror_keeps_settings_rights_and_groups(scene)
        for _ in range(ROUNDS):
            _kill(scene)
        _nothing_lost_nothing_doubled(scene)


def _prepare(scene: Scene) -> None:
    west = AdminClient({"bootstrap.servers": scene.west.bootstrap})
    west.create_topics([NewTopic(LINES, 1, 3, config={"min.insync.replicas": "2"})])[LINES].result(60)
    east = AdminClient({"bootstrap.servers": scene.east.bootstrap})
    east.create_topics([NewTopic(ORDERS, 2, 1, config={"retention.ms": RETENTION})])[ORDERS].result(60)
    for made in east.create_acls([_may_read(ORDERS)]).values():
        made.result(60)
    scene.write_orders(ORDERS_AT_ONCE)
    reader = Consumer({"bootstrap.servers": scene.east.bootstrap, "group.id": "reader"})
    eventually(lambda: _commits(reader), "the group commits")
    reader.close()


def _commits(reader: Consumer) -> bool:
    """Apache Kafka's coordinator refuses for a while after it has made its topic."""
    try:
        reader.commit(offsets=[TopicPartition(ORDERS, 0, 3)], asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.NOT_COORDINATOR:
            raise
        return False
    return True


def _may_read(topic: str) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )


def _mirror_keeps_settings_rights_and_groups(scene: Scene) -> None:
    west = AdminClient({"bootstrap.servers": scene.west.bootstrap})
    eventually(
        lambda: west.describe_acls(EVERYTHING).result(60) == [_may_read(MIRRORED)],
        "the rule is mirrored",
        scene,
    )
    resource = ConfigResource(ConfigResource.Type.TOPIC, MIRRORED)
    eventually(
        lambda: west.describe_configs([resource])[resource].result(60)["retention.ms"].value == RETENTION,
        "the topic's settings are mirrored",
        scene,
    )
    # 3 was committed. MirrorMaker 2 notes where every hundredth record went, here only the first; what lies
    # behind a noted record it takes for the one after it. On Apache Kafka the same comes out.
    eventually(lambda: scene.committed("reader", MIRRORED) == {0: 1}, "the group's offset is mirrored", scene)


def _kill(scene: Scene) -> None:
    """A worker, then a broker, then the worker that has taken over; each while there is work."""
    scene.write_lines(LINES_AT_ONCE)
    victim = scene.worker_of("file-source")
    heir = next(worker for worker in scene.workers if worker is not victim)
    victim.kill()
    scene.write_lines(LINES_AT_ONCE)
    scene.write_orders(ORDERS_AT_ONCE)
    eventually(lambda: scene.sunk()[-1:] == scene.written[-1:], "the other worker has taken over", scene)
    victim.launch()
    leader = scene.west.leader(LINES)
    scene.west.kill(leader)
    scene.write_lines(LINES_AT_ONCE)
    scene.write_orders(ORDERS_AT_ONCE)
    scene.west.restart(leader)
    scene.write_lines(LINES_AT_ONCE)
    heir.kill()
    heir.launch()


def _nothing_lost_nothing_doubled(scene: Scene) -> None:
    rows = scene.rows(scene.west.bootstrap, LINES, 0, len(scene.written))
    values = [(row.value or b"").decode() for row in rows]
    assert len(values) == len(scene.written)
    assert values == scene.written
    # A sink may write a line again after a kill: only its connector could know better, and a file's does not.
    eventually(lambda: set(scene.sunk()) == set(scene.written), "every line has arrived", scene)
    for partition in range(2):
        there = scene.rows(scene.east.bootstrap, ORDERS, partition, 0)
        mirrored = scene.rows(scene.west.bootstrap, MIRRORED, partition, len(there))
        assert len(there) == ORDERS_AT_ONCE * (1 + 2 * ROUNDS) // 2
        assert mirrored == there
