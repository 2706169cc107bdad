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

    assert assign(cluster, 3, "moved", cluster.log_dirs(3)[1]) == ErrorCode.UNSUPPORTED_VERSION
    assert assign(cluster, 3, "moved", wanted) == ErrorCode.NONE
