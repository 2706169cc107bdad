"""Produce with acks=all: the answer waits for the replicas, for its time, or for another leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from headrace.broker.produce.produce_purgatory import DELAYED_BYTES, ProducePurgatory
from headrace.network.response import NO_RESPONSE, DelayedResponse, Response
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from headrace.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from headrace.protocol.primitives import Reader
from tests.unit.broker.serving import TOPIC, Server, sent
from tests.unit.log.material import batch_of
from tests.unit.replication.replicas import fetch, row

VERSION = 11


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(2)
    yield server
    server.close()


def produce(server: Server, *indexes: int, acks: int = -1, timeout_ms: int = 30_000) -> Response:
    partitions = [
        PartitionProduceData(index=index, records=bytes(batch_of(b"v")[0])) for index in indexes or (0,)
    ]
    topic = TopicProduceData(name=TOPIC, partition_data=partitions)
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
    return server.ask(request, VERSION)


def results(answer: Response) -> list[PartitionProduceResponse]:
    frame = sent(answer)
    response = ProduceResponse.decode(Reader(frame, 5), VERSION)  # correlation id and tags before it
    return response.responses[0].partition_responses


def codes(answer: Response) -> list[int]:
    return [each.error_code for each in results(answer)]


def is_pending(answer: Response) -> bool:
    return isinstance(answer, DelayedResponse) and not answer.is_done


async def test_the_answer_waits_until_it_is_committed(server: Server) -> None:
    first, second = produce(server), produce(server)
    assert is_pending(first)
    assert len(server.context.produces.purgatory) == 2
    fetch(server.partition, 2, 1)
    assert [each.base_offset for each in results(first)] == [0]
    assert is_pending(second)
    fetch(server.partition, 2, 2)
    assert [each.base_offset for each in results(second)] == [1]
    assert len(server.context.produces.purgatory) == 0


async def test_a_produce_that_waits_does_not_stop_its_connection(server: Server) -> None:
    answer = produce(server)
    assert isinstance(answer, DelayedResponse)
    assert not answer.exclusive


@pytest.mark.parametrize("acks", [0, 1])
async def test_who_does_not_ask_for_replicas_does_not_wait(server: Server, acks: int) -> None:
    answer = produce(server, acks=acks)
    assert answer is NO_RESPONSE if acks == 0 else codes(answer) == [0]


async def test_a_request_waits_for_all_its_partitions(server: Server) -> None:
    answer = produce(server, 0, 1)
    fetch(server.partitions[1], 2, 1)
    assert is_pending(answer)
    fetch(server.partitions[0], 2, 1)
    assert codes(answer) == [0, 0]


async def test_when_its_time_is_over_only_what_is_missing_is_refused(server: Server) -> None:
    answer = produce(server, 0, 1, timeout_ms=50)
    fetch(server.partitions[1], 2, 1)
    await asyncio.sleep(0.3)
    assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT, 0]
    fetch(server.partitions[0], 2, 1)
    assert len(server.context.produces.purgatory) == 0


async def test_another_leader_is_told_at_once(server: Server) -> None:
    answer = produce(server, 0, 1)
    server.partitions[0].assign(row(2, 2), 1, 0.0)
    assert is_pending(answer)
    fetch(server.partitions[1], 2, 1)
    assert codes(answer) == [ErrorCode.NOT_LEADER_OR_FOLLOWER, 0]


async def test_too_few_replicas_are_told_before_anything_is_written(server: Server) -> None:
    partition = server.partition
    partition.log.update_config(replace(partition.log.config, min_insync_replicas=2))
    partition.assign(row(1, 1, (1,), version=11), 1, 0.0)
    assert codes(produce(server)) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert partition.log.end_offset == 0


async def test_a_repeated_batch_waits_for_the_first_one(server: Server) -> None:
    def again() -> Response:
        batch = batch_of(b"v", producer_id=5, producer_epoch=0, base_sequence=0)[0]
        data = PartitionProduceData(index=0, records=bytes(batch))
        topic = TopicProduceData(name=TOPIC, partition_data=[data])
        return server.ask(ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[topic]), VERSION)

    first, second = again(), again()
    assert server.partition.log.end_offset == 1
    assert is_pending(second)
    fetch(server.partition, 2, 1)
    assert [each.base_offset for each in results(first) + results(second)] == [0, 0]


async def test_who_asks_the_wrong_broker_is_told_who_leads(server: Server) -> None:
    server.partition.assign(row(9, 9), 1, 0.0)
    frame = sent(produce(server))
    response = ProduceResponse.decode(Reader(frame, 5), VERSION)
    said = response.responses[0].partition_responses[0]
    assert said.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (said.current_leader.leader_id, said.current_leader.leader_epoch) == (9, 9)
    assert [(node.node_id, node.host) for node in response.node_endpoints] == [(9, "host-9")]


async def test_with_group_commit_disk_and_replicas_must_have_it(server: Server) -> None:
    partition = server.partition
    partition.log.update_config(replace(partition.log.config, flush_messages=1))
    answer = produce(server)
    fetch(partition, 2, 1)
    assert is_pending(answer), "the leader's own disk is missing"
    await server.context.storage.flusher.drain()
    await asyncio.sleep(0)
    assert codes(answer) == [0]
    answer = produce(server)
    await server.context.storage.flusher.drain()
    await asyncio.sleep(0)
    assert is_pending(answer), "the follower is missing"
    fetch(partition, 2, 2)
    assert codes(answer) == [0]


async def test_with_group_commit_one_ack_waits_for_the_disk_alone(server: Server) -> None:
    partition = server.partition
    partition.log.update_config(replace(partition.log.config, flush_messages=1))
    answer = produce(server, acks=1)
    assert is_pending(answer)
    await server.context.storage.flusher.drain()
    await asyncio.sleep(0)
    assert codes(answer) == [0]
    assert partition.high_watermark == 0


async def test_when_too_many_wait_each_connection_waits_with_its_next_request(server: Server) -> None:
    server.stub.produces.purgatory = ProducePurgatory(server.loop, 3 * DELAYED_BYTES)
    answers = [produce(server) for _ in range(5)]
    assert all(isinstance(each, DelayedResponse) for each in answers)
    assert [each.exclusive for each in answers if isinstance(each, DelayedResponse)] == [False] * 3 + [
        True
    ] * 2
    assert server.context.runtime.memory.held.refusals == 2
    fetch(server.partition, 2, 5)
    assert [codes(each) for each in answers] == [[0]] * 5
    again = produce(server)
    assert isinstance(again, DelayedResponse)
    assert not again.exclusive
