"""What was sent behind a batch that is refused is refused as well, so that a producer sees no gap."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.broker.produce.early_batches import EARLY_SECONDS
from headrace.broker.produce.refused_batches import REMEMBERED, REMEMBERED_MS, RefusedBatches
from headrace.core.errors import NotLeader
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import ProduceResponse
from headrace.protocol.primitives import Reader
from headrace.replication.leading import LeaderTerm
from headrace.replication.safeguards import ALL_ON
from tests.unit.broker.serving import TOPIC, Server, sent
from tests.unit.log.material import NOW, batch_of
from tests.unit.replication.replicas import row

VERSION = 11
PRODUCER = 5


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(2, isr=(1,))
    yield server
    server.close()


def send(server: Server, sequence: int, *, epoch: int = 0, indexes: tuple[int, ...] = (0,)) -> list[int]:
    """One request, with acks=1: the error codes of its answer."""
    batch, _ = batch_of(b"v", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence)
    partitions = [PartitionProduceData(index=index, records=bytes(batch)) for index in indexes]
    topic = TopicProduceData(name=TOPIC, partition_data=partitions)
    answer = sent(server.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), VERSION))
    (told,) = ProduceResponse.decode(Reader(answer, 5), VERSION).responses
    return [each.error_code for each in told.partition_responses]


def follow(server: Server) -> None:
    server.partition.assign(row(2, server.partition.leader_epoch + 1, (1, 2)), 1, 0.0)


def lead(server: Server) -> None:
    server.partition.assign(row(1, server.partition.leader_epoch + 1, (1,)), 1, 0.0)


NONE, NOT_LEADER, GAP = (
    [ErrorCode.NONE],
    [ErrorCode.NOT_LEADER_OR_FOLLOWER],
    [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER],
)


@pytest.mark.parametrize("known", [True, False], ids=["a known producer", "a new producer"])
async def test_those_behind_it_wait_for_the_first(server: Server, known: bool) -> None:
    first = 0
    if known:
        assert send(server, 0) == NONE
        first = 1
    follow(server)
    assert send(server, first) == NOT_LEADER
    lead(server)
    assert send(server, first + 1) == NOT_LEADER
    assert send(server, first + 2) == NOT_LEADER
    assert [send(server, first + number) for number in range(3)] == [NONE] * 3
    assert len(server.context.produces.refused) == 0


async def test_also_in_requests_for_several_partitions(server: Server) -> None:
    both = (0, 1)
    follow(server)
    assert send(server, 0, indexes=both) == NOT_LEADER + NONE
    lead(server)
    assert send(server, 1, indexes=both) == NOT_LEADER + NONE
    assert send(server, 0) == NONE
    assert send(server, 1) == NONE


async def test_a_gap_that_is_none_of_ours_is_told(server: Server) -> None:
    assert send(server, 0) == NONE
    assert send(server, 2) == GAP
    follow(server)
    assert send(server, 3) == NOT_LEADER
    lead(server)
    server.now = EARLY_SECONDS
    assert send(server, 2) == GAP, "it was sent before the one that was refused"


@pytest.mark.parametrize("known", [True, False], ids=["a known producer", "a new producer"])
async def test_what_comes_to_a_new_leader_too_early_waits_for_what_the_last_one_refused(
    server: Server, known: bool
) -> None:
    """As librdkafka does: its thread of the new leader sends what is next before those that the old leader
    has just refused are back in the queue."""
    first = 0
    if known:
        assert send(server, 0) == NONE
        first = 1
    follow(server)
    lead(server)
    assert send(server, first + 2) == NOT_LEADER
    assert send(server, first + 3) == NOT_LEADER
    assert [send(server, first + number) for number in range(4)] == [NONE] * 4
    assert len(server.context.produces.refused) == 0
    assert send(server, first + 5) == GAP, "this leader has had some of it, in order"


async def test_a_new_epoch_too_begins_at_a_new_leader_with_its_first(server: Server) -> None:
    assert send(server, 0) == NONE
    follow(server)
    lead(server)
    assert send(server, 1, epoch=1) == NOT_LEADER
    assert [send(server, number, epoch=1) for number in range(2)] == [NONE] * 2
    assert send(server, 0) == [ErrorCode.INVALID_PRODUCER_EPOCH]


async def test_what_was_copied_from_the_last_leader_is_recognised(server: Server) -> None:
    assert [send(server, number) for number in range(3)] == [NONE] * 3
    end = server.partition.log.end_offset
    follow(server)
    lead(server)
    assert [send(server, number) for number in range(3)] == [NONE] * 3
    assert server.partition.log.end_offset == end


@pytest.mark.parametrize("known", [True, False], ids=["a known producer", "a new producer"])
async def test_a_leader_is_new_for_seconds_only(server: Server, known: bool) -> None:
    """What is lost is told then; and a producer that was forgotten may begin anywhere."""
    if known:
        assert send(server, 0) == NONE
    follow(server)
    lead(server)
    server.now = EARLY_SECONDS - 0.1
    assert send(server, 2) == NOT_LEADER
    server.now = EARLY_SECONDS + REMEMBERED_MS / 1000
    assert send(server, 2) == (GAP if known else NONE)


async def test_what_went_to_another_leader_is_not_waited_for(server: Server) -> None:
    assert send(server, 0) == NONE
    follow(server)
    assert send(server, 1) == NOT_LEADER
    lead(server)
    batch, header = batch_of(b"v", producer_id=PRODUCER, producer_epoch=0, base_sequence=1)
    server.partition.append(batch, header, acks=1, now_ms=NOW)
    assert send(server, 2) == NONE


async def test_a_new_epoch_begins_anew(server: Server) -> None:
    assert send(server, 0) == NONE
    follow(server)
    assert send(server, 1) == NOT_LEADER
    lead(server)
    assert send(server, 0, epoch=1) == NONE


async def test_nobody_waits_for_ever(server: Server) -> None:
    """Also not who asks again and again: the one before it may have been given up."""
    assert send(server, 0) == NONE
    follow(server)
    assert send(server, 1) == NOT_LEADER
    lead(server)
    while server.now < REMEMBERED_MS / 1000:
        assert send(server, 2) == NOT_LEADER
        server.now += 1
    assert send(server, 2) == GAP
    assert len(server.context.produces.refused) == 0


def test_only_so_many_are_remembered() -> None:
    refused = RefusedBatches()
    for number in range(REMEMBERED + 10):
        batch, _ = batch_of(b"v", producer_id=number, producer_epoch=0, base_sequence=0)
        refused.note(TopicPartition("t", 0), memoryview(batch), NotLeader("no"), 0)
    assert len(refused) == REMEMBERED


def test_the_first_leader_of_all_has_no_predecessor() -> None:
    """A topic that was made anew under a producer's hands is written at once."""
    assert not LeaderTerm(row(1, 0, (1,)), 1, 0, 0.0, ALL_ON).is_new
    assert LeaderTerm(row(1, 1, (1,)), 1, 0, 0.0, ALL_ON).is_new
