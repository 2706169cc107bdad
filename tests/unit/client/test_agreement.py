"""A change is over when all brokers tell of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headrace.client import admin
from headrace.client.agreement import until_all_agree, until_all_know
from headrace.client.cluster import Cluster
from headrace.client.errors import ConnectionLost
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.create_topics_request import CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.client.scripted_broker import ScriptedBroker


class Pair:
    """Two brokers. The first creates topics; the second hears of it after it was asked `late` times.

    With `elsewhere`, the controller is no broker, and the first one hears as late as the second.
    """

    def __init__(self, late: int, *, elsewhere: bool = False) -> None:
        self.late = late
        self.elsewhere = elsewhere
        self.made: list[str] = []
        self.asked = 0
        self.brokers = [
            ScriptedBroker({MetadataRequest: self._first, CreateTopicsRequest: self._create}),
            ScriptedBroker({MetadataRequest: self._second}),
        ]

    def _create(self, request: CreateTopicsRequest, _version: int) -> Message:
        self.made += [topic.name for topic in request.topics]
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, num_partitions=1, replication_factor=1)
                for topic in request.topics
            ]
        )

    def _first(self, request: MetadataRequest, _version: int) -> Message:
        late = self.elsewhere and self.asked <= self.late
        return self._told(request, [] if late else self.made)

    def _second(self, request: MetadataRequest, _version: int) -> Message:
        self.asked += 1
        return self._told(request, self.made if self.asked > self.late else [])

    def _told(self, request: MetadataRequest, known: list[str]) -> Message:
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=number, host="127.0.0.1", port=broker.port)
                for number, broker in enumerate(self.brokers)
            ],
            controller_id=0,
            topics=[
                MetadataResponseTopic(
                    name=topic.name,
                    error_code=0 if topic.name in known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    partitions=[MetadataResponsePartition(partition_index=0)] if topic.name in known else [],
                )
                for topic in request.topics or ()
            ],
        )


@asynccontextmanager
async def running(pair: Pair) -> AsyncIterator[Cluster]:
    first, second = pair.brokers
    async with first, second, Cluster(first.address) as cluster:
        yield cluster


async def test_a_created_topic_is_known_to_the_last_broker() -> None:
    pair = Pair(late=3)
    async with running(pair) as cluster:
        assert await admin.create_topic(cluster, "new") == (1, 1)
    assert pair.asked == 4


async def test_a_created_topic_is_known_though_all_agreed_that_it_was_not() -> None:
    """Apache Kafka's controller answers before any broker has heard."""
    pair = Pair(late=3, elsewhere=True)
    async with running(pair) as cluster:
        await admin.create_topic(cluster, "new")
        assert not (await cluster.topic("new")).error_code


async def test_a_broker_that_cannot_be_asked_is_not_waited_for() -> None:
    pair = Pair(late=0)
    async with running(pair) as cluster:
        second = pair.brokers[1]
        await second.__aexit__()
        assert await admin.create_topic(cluster, "new") == (1, 1)
        await second.__aenter__()


async def test_a_broker_that_never_hears_of_it_is_waited_for_in_vain() -> None:
    pair = Pair(late=10**6)
    async with running(pair) as cluster, asyncio.timeout(20):
        pair.made.append("new")
        await until_all_agree(cluster, ["new"], timeout=0.1)
    assert pair.asked


async def test_nobody_is_asked_where_nothing_was_changed() -> None:
    pair = Pair(late=10**6)
    async with running(pair) as cluster:
        await until_all_agree(cluster, [])
    assert not pair.asked


async def test_each_broker_is_asked_until_it_knows() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:
        answers = [False, False, True]
        asked: list[int] = []

        async def knows(broker_id: int) -> bool:
            asked.append(broker_id)
            return answers.pop(0)

        await until_all_know(cluster, knows)
        assert asked == [0, 0, 0]


async def test_who_never_knows_or_cannot_be_asked_is_not_waited_for() -> None:
    async with ScriptedBroker() as broker, Cluster(broker.address) as cluster:

        async def never(_broker_id: int) -> bool:
            return False

        async def lost(_broker_id: int) -> bool:
            raise ConnectionLost("gone")

        await asyncio.wait_for(until_all_know(cluster, never, timeout=0.1), 5)
        await asyncio.wait_for(until_all_know(cluster, lost), 5)
