"""Faults that befall the coordinators of groups and transactions, by their numbers in the list of faults."""

from __future__ import annotations

import errno

import pytest

from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from tests.chaos.conftest import MakeBed
from tests.chaos.testbed import Equipment, Testbed
from tests.cluster_process import eventually
from tests.damage import flip_bit
from tests.wire import Wire

pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("headrace_only")]

GROUP, TOPIC, OFFSETS = "readers", "orders", "__consumer_offsets"
#: One partition, and nobody who gives its leadership back: so who comes next is known. The last one serves.
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "auto.leader.rebalance.enable": "false",
    "min.insync.replicas": "1",
}


def coordinator(bed: Testbed) -> int:
    number = next(number for number, broker in bed.cluster.brokers.items() if broker.running)
    with Wire(bed.cluster.brokers[number].port, timeout=10) as wire:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
        (found,) = wire.ask(request, 4, FindCoordinatorResponse).coordinators
    return -1 if found.error_code else int(found.node_id)


def commit(bed: Testbed, offset: int) -> bool:
    topic = OffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
    )
    request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, topics=[topic])
    with Wire(bed.cluster.brokers[coordinator(bed)].port, timeout=10) as wire:
        answer = wire.ask(request, 7, OffsetCommitResponse)
    return bool(answer.topics[0].partitions[0].error_code == 0)


def committed(bed: Testbed) -> int | None:
    """None if it cannot be told now."""
    number = coordinator(bed)
    if number == -1:
        return None
    request = OffsetFetchRequest(
        group_id=GROUP, topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    )
    with Wire(bed.cluster.brokers[number].port, timeout=10) as wire:
        answer = wire.ask(request, 5, OffsetFetchResponse)
    if answer.error_code or answer.topics[0].partitions[0].error_code:
        return None
    return int(answer.topics[0].partitions[0].committed_offset)


def test_fault_36_an_error_of_the_disk_while_a_coordinator_loads(make_bed: MakeBed) -> None:
    """The next leader cannot read what it is to lead: its directory goes offline, and the third one leads."""
    bed = make_bed(Equipment(faults=True), properties=PROPERTIES)
    bed.cluster.create_topic(TOPIC, [[1, 2, 3]])
    eventually(lambda: coordinator(bed) != -1, 60, "a group has a coordinator")
    eventually(lambda: commit(bed, 42), 60, "an offset is committed")
    bed.cluster.wait_in_sync(OFFSETS)
    first, second, third = bed.cluster.partition(OFFSETS).replicas
    bed.faults[second].fail(reads=errno.EIO)
    bed.cluster.kill(first)
    eventually(lambda: bed.cluster.ask(third, OFFSETS).partitions[OFFSETS, 0].leader == third, 60, "moved")
    eventually(lambda: committed(bed) == 42, 60, "the third broker tells what was committed")
    said = bed.cluster.brokers[second].output.read_text()
    assert "internal topic cannot be read" in said
    assert "Input/output error" in said


def test_fault_36_damage_that_a_coordinator_meets_while_it_loads(make_bed: MakeBed) -> None:
    """The next leader gives its replica up, and the third one leads. The batch was once passed over, and the
    group began anew."""
    bed = make_bed(properties=PROPERTIES)
    bed.cluster.create_topic(TOPIC, [[1, 2, 3]])
    eventually(lambda: coordinator(bed) != -1, 60, "a group has a coordinator")
    eventually(lambda: commit(bed, 42), 60, "an offset is committed")
    bed.cluster.wait_in_sync(OFFSETS)
    first, second, third = bed.cluster.partition(OFFSETS).replicas
    (path,) = bed.partition_dir(second, OFFSETS).glob("*.log")
    flip_bit(path, path.stat().st_size - 5)
    bed.cluster.kill(first)
    eventually(lambda: bed.cluster.ask(third, OFFSETS).partitions[OFFSETS, 0].leader == third, 60, "moved")
    eventually(lambda: committed(bed) == 42, 60, "the third broker tells what was committed")
    assert "partition quarantined" in bed.cluster.brokers[second].output.read_text()
