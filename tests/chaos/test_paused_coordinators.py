"""A coordinator that stood still until another took its place does not tell what it knew before."""

from __future__ import annotations

from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from tests.chaos.conftest import MakeBed
from tests.chaos.testbed import Testbed
from tests.cluster_process import eventually
from tests.wire import Wire

pytestmark = pytest.mark.timeout(240)
TOPIC: Final = "read"
KEY: Final = ApiKey.OFFSET_FETCH
VERSION: Final = 5
QUESTIONS: Final = 20
"""They lie in its socket when it wakes. Some are served before anything else that has come meanwhile."""


def coordinator(bed: Testbed, group: str, paused: int = -1) -> int:
    """-1 while there is none, or only the one that is paused."""
    number = next(number for number in bed.numbers if number != paused)
    broker = bed.cluster.brokers[number]
    with Wire(broker.port, host=broker.place.address) as wire:
        found: FindCoordinatorResponse = wire.ask(
            FindCoordinatorRequest(key=group, key_type=0), 3, FindCoordinatorResponse
        )
    return -1 if found.error_code or found.node_id == paused else found.node_id


def a_group(bed: Testbed, *, of_the_controller: bool) -> str:
    """Whose coordinator is the active controller as well, or is not."""
    eventually(lambda: coordinator(bed, "any") > 0, 60, "there are coordinators")
    controller = bed.cluster.view().controller
    names = (f"readers-{number}" for number in range(100))
    return next(name for name in names if (coordinator(bed, name) == controller) is of_the_controller)


def commit(bed: Testbed, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bed.cluster.bootstrap, "group.id": group})
    try:
        (done,) = consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
        assert done.error is None
    finally:
        consumer.close()


def ask(wire: Wire, group: str) -> int:
    wanted = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    return wire.send_body(KEY, VERSION, OffsetFetchRequest(group_id=group, topics=[wanted]).to_bytes(VERSION))


def hear(wire: Wire, number: int) -> int | ErrorCode:
    answer = OffsetFetchResponse.from_bytes(wire.receive_body(KEY, VERSION, number), VERSION)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return answer.topics[0].partitions[0].committed_offset


@pytest.mark.parametrize(
    "of_the_controller", [False, True], ids=["a follower", "became the active controller"]
)
def test_an_offset_does_not_go_back(make_bed: MakeBed, headrace_only: None, of_the_controller: bool) -> None:
    bed = make_bed()
    bed.cluster.create_topic(TOPIC, [[1, 2, 3]])
    group = a_group(bed, of_the_controller=of_the_controller)
    commit(bed, group, 5)
    paused = coordinator(bed, group)
    broker = bed.cluster.brokers[paused]
    with Wire(broker.port, host=broker.place.address, timeout=60) as wire:
        assert hear(wire, ask(wire, group)) == 5
        bed.cluster.pause(paused)
        eventually(lambda: coordinator(bed, group, paused) > 0, 60, "another takes its place")
        commit(bed, group, 9)
        asked = [ask(wire, group) for _ in range(QUESTIONS)]
        bed.cluster.resume(paused)
        heard = [hear(wire, number) for number in asked]
    assert set(heard) <= {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, 9}
