"""A replica that moves in from another broker, and the log directory that was asked for ahead of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from tests.apache_kafka import KafkaTools
from tests.cluster.equipped import EquippedCluster
from tests.cluster.kafka_commands import Commands
from tests.cluster.load import read_numbers, write
from tests.cluster_process import eventually
from tests.wire import Wire

RECORDS = 1000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EquippedCluster]:
    with EquippedCluster(tmp_path / "cluster") as running:
        yield running


def assign(cluster: EquippedCluster, broker: int, topic: str, directory: Path) -> int:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    asked = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(directory), topics=topics)])
    with Wire(cluster.brokers[broker].port, timeout=30) as wire:
        answer: AlterReplicaLogDirsResponse = wire.ask(asked, 2, AlterReplicaLogDirsResponse)
    return answer.results[0].partitions[0].error_code


def test_a_replica_that_moves_in_goes_where_it_was_asked_for(
    cluster: EquippedCluster, tools: KafkaTools, tmp_path: Path
) -> None:
    cluster.create_topic("moved", [[1, 2]])
    write(cluster.bootstrap, "moved", RECORDS)
    # The metadata is in the first directory: a new partition would go to the other one.
    wanted = cluster.log_dirs(3)[0]
    assert assign(cluster, 3, "moved", wanted) == ErrorCode.REPLICA_NOT_AVAILABLE
    row = {"topic": "moved", "partition": 0, "replicas": [1, 3], "log_dirs": ["any", str(wanted)]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    commands = Commands(tools, cluster)
    arguments = ("--reassignment-json-file", str(plan))
    started = commands.output("reassign", "--execute", *arguments, "--timeout", "30000")
    assert "Successfully started partition reassignment" in started
    assert f"started moving log directory to {wanted}" in started

    eventually(lambda: set(cluster.partition("moved").isr) == {1, 3}, 30, "the reassignment completes")
    assert (wanted / "moved-0").is_dir()
    assert not (cluster.log_dirs(3)[1] / "moved-0").exists()
    verified = commands.output("reassign", "--verify", *arguments)
    assert "Reassignment of partition moved-0 is completed." in verified
    assert "Reassignment of replica moved-0-3 completed successfully." in verified
    assert read_numbers(cluster.bootstrap, "moved") == list(range(RECORDS))

    assert assign(cluster, 3, "moved", wanted) == ErrorCode.NONE


def test_replicas_move_between_the_directories_of_their_brokers(
    cluster: EquippedCluster, tools: KafkaTools, tmp_path: Path
) -> None:
    """The leader's and a follower's, by Kafka's own tool, slowly at first."""
    cluster.create_topic("moved", [[1, 2]])
    write(cluster.bootstrap, "moved", RECORDS, size=6000)
    commands = Commands(tools, cluster)
    places = {
        broker: rows["moved-0"]["logDir"] for broker, rows in commands.log_dirs("moved").items() if rows
    }
    assert set(places) == {1, 2}
    goals = {
        broker: next(str(path) for path in cluster.log_dirs(broker) if str(path) != place)
        for broker, place in places.items()
    }
    row = {"topic": "moved", "partition": 0, "replicas": [1, 2], "log_dirs": [goals[1], goals[2]]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [row]}))
    arguments = ("--reassignment-json-file", str(plan))
    slow = ("--replica-alter-log-dirs-throttle", "1")
    started = commands.output("reassign", "--execute", *arguments, *slow)
    for goal in goals.values():
        assert f"started moving log directory to {goal}" in started
    verified = commands.output("reassign", "--verify", "--preserve-throttles", *arguments)
    for broker in (1, 2):
        assert f"Reassignment of replica moved-0-{broker} is still in progress." in verified
    fast = ("--replica-alter-log-dirs-throttle", "1000000000")
    commands.output("reassign", "--execute", "--additional", *arguments, *fast)

    def are_moved() -> bool:
        verified = commands.output("reassign", "--verify", *arguments)
        return all(
            f"Reassignment of replica moved-0-{broker} completed successfully." in verified
            for broker in (1, 2)
        )

    eventually(are_moved, 60, "both replicas are where they shall be")
    after = {broker: rows["moved-0"]["logDir"] for broker, rows in commands.log_dirs("moved").items() if rows}
    assert after == goals
    write(cluster.bootstrap, "moved", RECORDS)
    assert sorted(read_numbers(cluster.bootstrap, "moved")) == sorted([*range(RECORDS)] * 2)
    eventually(lambda: set(cluster.partition("moved").isr) == {1, 2}, 30, "both are in sync")
