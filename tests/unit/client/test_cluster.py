from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.client import admin
from headrace.client.cluster import Address, Cluster, parse_bootstrap
from headrace.client.errors import ClientFailure, NotAKafkaBroker, Refused, Unreachable
from headrace.client.group_lag import log_ends
from headrace.client.offsets import LATEST, list_offsets, partitions_of
from headrace.client.topics import describe_topics, list_topics
from headrace.core.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics_request import CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.messages.metadata_request import MetadataRequest
from tests.ports import own_port
from tests.unit.client.scripted_broker import ScriptedBroker


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("localhost:1", [("localhost", 1)]),
        ("a:1, b:2", [("a", 1), ("b", 2)]),
        ("host", [("host", 9092)]),
        ("[::1]:5", [("::1", 5)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_bootstrap_addresses(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_bootstrap(text) == [Address(*address) for address in addresses]


@pytest.mark.parametrize("text", ["", ":1", "a:b", "a:0", "a:65536", "a:1,,b:2"])
def test_what_is_not_an_address(text: str) -> None:
    with pytest.raises(ClientFailure, match="is not an address"):
        parse_bootstrap(text)


async def test_the_second_bootstrap_address_serves() -> None:
    async with ScriptedBroker() as broker, Cluster(f"127.0.0.1:{own_port()},{broker.address}") as cluster:
        broker.topics["t"] = 2
        assert [topic.name for topic in await list_topics(cluster)] == ["t"]


async def test_an_unreachable_bootstrap_is_said_at_once() -> None:
    async with Cluster(f"127.0.0.1:{own_port()}") as cluster:
        async with asyncio.timeout(15):
            with pytest.raises(Unreachable):
                await cluster.retried(lambda: cluster.metadata([]))


async def test_a_bootstrap_address_without_a_broker_is_said_at_once() -> None:
    async with hanging_up() as address, Cluster(address) as cluster:
        async with asyncio.timeout(15):
            with pytest.raises(NotAKafkaBroker):
                await cluster.retried(lambda: cluster.metadata([]))


async def test_a_broker_that_hangs_up_while_it_is_killed_is_asked_again() -> None:
    async with ScriptedBroker() as broker, hanging_up() as dying, Cluster(broker.address) as cluster:
        await cluster.metadata([])
        addresses = [*parse_bootstrap(dying), *parse_bootstrap(broker.address)]

        async def attempt() -> str:
            await (await cluster._connect(addresses.pop(0))).close()
            return "answered"

        assert await cluster.retried(attempt) == "answered"
        assert not addresses


@asynccontextmanager
async def hanging_up() -> AsyncIterator[str]:
    """Listens, and closes every connection at once."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_topic_that_is_not_there() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        with pytest.raises(Refused, match="topic nope does not exist") as caught:
            await cluster.leader(TopicPartition("nope", 0))
        assert "headrace topic create" in caught.value.hint
        broker.topics["t"] = 2
        with pytest.raises(Refused, match="topic t has no partition 2"):
            await cluster.leader(TopicPartition("t", 2))
        with pytest.raises(ClientFailure, match="there is no broker 7"):
            await cluster.broker(7)


async def test_metadata_is_cached_until_it_is_forgotten() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        broker.topics["t"] = 1
        for _ in range(3):
            assert await cluster.leader(TopicPartition("t", 0)) == 0
        assert len(broker.seen(MetadataRequest)) == 1
        cluster.forget("t")
        await cluster.leader(TopicPartition("t", 0))
        assert len(broker.seen(MetadataRequest)) == 2


def offsets_after(codes: list[int]) -> Callable[[ListOffsetsRequest, int], ListOffsetsResponse]:
    """Answers with each error code in turn, then with offset 42."""

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        code = codes.pop(0) if codes else 0
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=entry.partition_index, error_code=code, offset=-1 if code else 42
                        )
                        for entry in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


async def test_what_passes_is_tried_again_with_fresh_metadata() -> None:
    async with (
        ScriptedBroker({ListOffsetsRequest: offsets_after([6, 5, 74])}) as broker,
        Cluster(broker.address) as cluster,
    ):
        broker.topics["t"] = 1
        found = await list_offsets(cluster, {TopicPartition("t", 0): LATEST})
        assert found[TopicPartition("t", 0)].offset == 42
        assert len(broker.seen(ListOffsetsRequest)) == 4
        assert len(broker.seen(MetadataRequest)) >= 4


async def test_what_does_not_pass_is_raised() -> None:
    async with (
        ScriptedBroker({ListOffsetsRequest: offsets_after([29])}) as broker,
        Cluster(broker.address) as cluster,
    ):
        broker.topics["t"] = 1
        with pytest.raises(Refused, match="no right"):
            await list_offsets(cluster, {TopicPartition("t", 0): LATEST})
        assert len(broker.seen(ListOffsetsRequest)) == 1


async def test_a_log_that_its_only_leader_cannot_serve_is_not_waited_for() -> None:
    """It needs a person, and what a person sees meanwhile is nothing."""
    storage_error = 56
    async with (
        ScriptedBroker({ListOffsetsRequest: offsets_after([storage_error] * 10_000)}) as broker,
        Cluster(broker.address) as cluster,
    ):
        broker.topics["t"] = 1
        broker.offline = (0,)
        async with asyncio.timeout(15):
            with pytest.raises(Refused, match="partition t-0: the disk failed"):
                await list_offsets(cluster, {TopicPartition("t", 0): LATEST})
        assert len(broker.seen(ListOffsetsRequest)) == 1


async def test_trying_again_ends() -> None:
    async with (
        ScriptedBroker({ListOffsetsRequest: offsets_after([6] * 10_000)}) as broker,
        Cluster(broker.address, request_timeout=0.3) as cluster,
    ):
        broker.topics["t"] = 1
        with pytest.raises(Refused):
            await list_offsets(cluster, {TopicPartition("t", 0): LATEST})


async def test_a_lost_connection_is_opened_again() -> None:
    async with (
        ScriptedBroker({ListOffsetsRequest: offsets_after([])}) as broker,
        Cluster(broker.address) as cluster,
    ):
        broker.topics["t"] = 1
        await list_offsets(cluster, {TopicPartition("t", 0): LATEST})
        broker.drop_connections()
        await asyncio.sleep(0.05)
        found = await list_offsets(cluster, {TopicPartition("t", 0): LATEST})
        assert found[TopicPartition("t", 0)].offset == 42


@pytest.mark.parametrize(
    "ask",
    [
        lambda cluster: list_topics(cluster),
        lambda cluster: describe_topics(cluster, ["t"]),
        lambda cluster: partitions_of(cluster, "t"),
        lambda cluster: log_ends(cluster, [TopicPartition("t", 0)]),
    ],
    ids=["list", "describe", "partitions", "ends"],
)
async def test_a_broker_that_is_still_starting_is_asked_again(
    ask: Callable[[Cluster], Awaitable[Any]],
) -> None:
    """It answers ApiVersions, and hangs up on everything else."""
    async with (
        ScriptedBroker({ListOffsetsRequest: offsets_after([])}) as broker,
        Cluster(broker.address) as cluster,
    ):
        broker.topics["t"] = 1
        answer = broker.handlers[MetadataRequest]
        early = iter([True, True])

        def hang_up_at_first(request: MetadataRequest, version: int) -> Message | None:
            if next(early, False):
                broker.drop_connections()
                return None
            return answer(request, version)

        broker.handlers[MetadataRequest] = hang_up_at_first
        assert await ask(cluster)
        assert len(broker.seen(MetadataRequest)) >= 3


async def test_what_the_broker_says_is_kept() -> None:
    def refuse(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name="t", error_code=40, error_message="no such name: retain.ms")]
        )

    async with ScriptedBroker({CreateTopicsRequest: refuse}) as broker, Cluster(broker.address) as cluster:
        with pytest.raises(Refused, match=r"a setting of topic t is invalid: no such name: retain.ms"):
            await admin.create_topic(cluster, "t", partitions=1, configs={"retain.ms": "1"})
        (request,) = broker.seen(CreateTopicsRequest)
        assert request.topics[0].configs[0].name == "retain.ms"
