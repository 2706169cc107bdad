"""The internal topics of a cluster get the replicas that are configured, whoever is down at the time."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from tests.broker_process import HEADRACE
from tests.cluster_process import HeadraceCluster, eventually
from tests.wire import Wire

pytestmark = pytest.mark.timeout(300)

TOPICS = {0: "__consumer_offsets", 1: "__transaction_state"}
FEW = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "zookeeper.session.timeout.ms": "3000",
}


def find(cluster: HeadraceCluster, broker_id: int, kind: int) -> int:
    """The error code of whoever looks for a coordinator."""
    with Wire(cluster.brokers[broker_id].port, timeout=30) as wire:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["first"])
        (found,) = wire.ask(request, 4, FindCoordinatorResponse).coordinators
    return int(found.error_code)


def replicas_of(cluster: HeadraceCluster, topic: str) -> list[int]:
    return [len(row.replicas) for row in cluster.view(topic).partitions.values()]


def headrace(cluster: HeadraceCluster, *words: str) -> str:
    done = subprocess.run(
        [str(HEADRACE), *words, "--bootstrap", cluster.bootstrap], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def status(cluster: HeadraceCluster) -> Any:
    return json.loads(headrace(cluster, "cluster", "status", "--json"))


def test_fault_39_the_first_group_while_brokers_are_down(tmp_path: Path) -> None:
    with HeadraceCluster(tmp_path, properties=FEW) as cluster:
        controller = cluster.view().controller
        for lost in set(cluster.brokers) - {controller}:
            cluster.kill(lost)
        eventually(lambda: cluster.alive() == {controller}, 60, "the others are fenced")
        for kind in TOPICS:
            assert find(cluster, controller, kind) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not cluster.view(*TOPICS.values()).partitions
        assert "too few brokers are alive" in cluster.brokers[controller].output.read_text()
        for lost in set(cluster.brokers) - {controller}:
            cluster.restart(lost)
        cluster.wait_whole(60)
        for kind, name in TOPICS.items():
            eventually(lambda kind=kind: find(cluster, controller, kind) == 0, 60, "there is one")  # type: ignore[misc]  # default binds
            eventually(  # whichever broker is asked: it may hear of it a moment later
                lambda name=name: replicas_of(cluster, name) == [3, 3, 3],  # type: ignore[misc]  # default binds
                60,
                "it has three replicas",
            )
            cluster.wait_in_sync(name)
        assert status(cluster)["verdict"] == "healthy"


def test_an_internal_topic_with_too_few_replicas_is_told_with_the_command_that_mends_it(
    tmp_path: Path,
) -> None:
    with HeadraceCluster(tmp_path, properties=FEW) as cluster:
        cluster.create_topic("__consumer_offsets", [[1], [2], [3]])
        seen = status(cluster)
        assert seen["verdict"] == "degraded"
        (found,) = seen["findings"]
        assert found["where"] == ["__consumer_offsets (should have 3)"]
        headrace(cluster, "cluster", "status", "--wait", "20")  # there is nothing that waiting would mend
        command, *words = shlex.split(found["do"])
        assert command == "headrace"
        headrace(cluster, *words)
        assert status(cluster)["verdict"] == "healthy"
        rows = cluster.view("__consumer_offsets").partitions.values()
        assert [len(row.replicas) for row in rows] == [3, 3, 3]
