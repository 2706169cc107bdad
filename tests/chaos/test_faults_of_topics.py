"""Faults in the middle of administration, by their numbers in the list of faults that a log must survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from tests.chaos.conftest import FURTHER_FORM, MakeBed
from tests.chaos.judged import judged, wait_same_logs
from tests.chaos.testbed import Equipment, Testbed
from tests.chaos.workload import TOPIC, TRIED_AGAIN
from tests.cluster_process import eventually
from tests.integration.real_client import read_all, send_all
from tests.wire import Wire

pytestmark = pytest.mark.timeout(240)


def ask(bed: Testbed, broker_id: int, request: object, version: int, response: type) -> object:
    broker = bed.cluster.brokers[broker_id]
    with Wire(broker.port, host=broker.place.address, timeout=30) as wire:
        return wire.ask(request, version, response)  # type: ignore[arg-type]  # the caller pairs them


def reassign(bed: Testbed, through: int, topic: str, moves: dict[int, list[int]]) -> None:
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=20_000,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in moves.items()
                ],
            )
        ],
    )
    answer = ask(bed, through, request, 0, AlterPartitionReassignmentsResponse)
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert answer.error_code == 0
    assert all(row.error_code == 0 for one in answer.responses for row in one.partitions), answer


@pytest.mark.parametrize(
    "fault",
    [
        "kill the leader",
        "cut the newcomer",
        pytest.param("kill the newcomer", marks=FURTHER_FORM),
        pytest.param("stop the leader", marks=FURTHER_FORM),
    ],
)
def test_fault_20_a_reassignment_completes_in_spite_of(make_bed: MakeBed, tmp_path: Path, fault: str) -> None:
    """Replica 1 moves to broker 4 under load, and somebody who is needed for that goes away."""
    bed = make_bed(
        Equipment(hosts="cut" in fault), brokers=4, properties={"zookeeper.session.timeout.ms": "3000"}
    )
    with judged(bed, tmp_path, [[1, 2, 3]]) as load:
        load.wait_acknowledged(200)
        victim = 4 if "newcomer" in fault else 1
        reassign(bed, 2, TOPIC, {0: [4, 2, 3]})
        if fault.startswith("kill"):
            bed.cluster.kill(victim)
        elif fault.startswith("stop"):
            bed.cluster.pause(victim)
        else:
            assert bed.network is not None
            bed.network.silence(victim)
        load.wait_acknowledged(100)
        row = bed.cluster.ask(2, TOPIC).partitions[TOPIC, 0]
        assert {2, 3} <= set(row.replicas), "a replica was given up before another had replaced it"
        bed.heal()

        def moved() -> bool:
            now = bed.cluster.ask(2, TOPIC).partitions[TOPIC, 0]
            return set(now.replicas) == set(now.isr) == {2, 3, 4}

        eventually(moved, 60, "the reassignment is complete")
        load.wait_acknowledged(50)
        eventually(lambda: not (bed.log_dir(1) / f"{TOPIC}-0").exists(), 90, "the old replica is removed")


def test_fault_21_a_topic_made_again_while_a_replica_was_away(make_bed: MakeBed, tmp_path: Path) -> None:
    bed = make_bed()
    bed.cluster.create_topic("again", [[1, 2, 3], [2, 3, 1]])
    bootstrap = bed.cluster.bootstrap
    for partition in (0, 1):
        send_all(
            bootstrap, "again", [b"old %d" % n for n in range(50)], partition=partition, settings=TRIED_AGAIN
        )
    bed.cluster.kill(1)
    eventually(
        lambda: bed.cluster.ask(2, "again").partitions["again", 0].leader in (2, 3), 30, "a new leader"
    )
    request = DeleteTopicsRequest(topic_names=["again"], timeout_ms=20_000)
    answer = ask(bed, 2, request, 5, DeleteTopicsResponse)
    assert isinstance(answer, DeleteTopicsResponse)
    assert answer.responses[0].error_code == 0

    def gone() -> bool:
        return not any(bed.cluster.ask(n, "again").partitions for n in (2, 3))

    eventually(gone, 30, "the topic is deleted")
    bed.cluster.restart(1)
    bed.cluster.wait_whole()
    bed.cluster.create_topic("again", [[1, 2, 3], [2, 3, 1]])
    for partition in (0, 1):
        send_all(
            bootstrap, "again", [b"new %d" % n for n in range(10)], partition=partition, settings=TRIED_AGAIN
        )
        found = [message.value() for message in read_all(bootstrap, "again", partition)]
        assert found == [b"new %d" % n for n in range(10)]
    wait_same_logs(bed, "again", 2)
