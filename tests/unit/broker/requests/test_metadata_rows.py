"""Everything is described in slices, and only what changed is described again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.requests.allowed_operations import NOT_ASKED
from headrace.broker.requests.metadata_rows import MetadataRows, with_operations
from headrace.broker.runtime.turns import SLICE_SECONDS, Turns
from headrace.controller.delta import MetadataDelta, RemovedTopic
from headrace.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.primitives import Writer

VERSION = 12
IN_A_SLICE = 10


class Topic:
    def __init__(self, number: int, partitions: int) -> None:
        self.name, self.topic_id, self._partitions = f"t{number}", UUID(int=number + 1), partitions

    def __len__(self) -> int:
        return self._partitions


class Clock:
    """Moves when a partition is described: ten of them take a slice."""

    def __init__(self) -> None:
        self.described = 0

    def monotonic(self) -> float:
        return self.described * SLICE_SECONDS / IN_A_SLICE

    def wall_ms(self) -> int:
        return 0


class World:
    def __init__(self, topics: int, partitions: int) -> None:
        self.clock = Clock()
        made = [Topic(number, partitions) for number in range(topics)]
        self.topics = {topic.name: topic for topic in made}
        by_id = {topic.topic_id: topic for topic in made}
        image = SimpleNamespace(topics_by_name=self.topics, topic=self.topics.get, topic_by_id=by_id.get)
        runtime: Any = SimpleNamespace(turns=Turns(asyncio.get_running_loop(), self.clock))
        metadata: Any = SimpleNamespace(image=image, store=SimpleNamespace(subscribe=self._subscribe))
        self.rows = MetadataRows(runtime, metadata)

    def _subscribe(self, listener: Callable[[MetadataDelta], None]) -> None:
        self.tell = listener

    def topic(self, topic: Any) -> MetadataResponseTopic:
        return MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id)

    def partition(self, _topic: Any, index: int) -> MetadataResponsePartition:
        self.clock.described += 1
        return MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])

    async def ask(self) -> bytes:
        rows: Any = await self.rows.all(VERSION, NOT_ASKED, self.topic, self.partition)
        return MetadataResponse(topics=rows).to_bytes(VERSION)

    def plain(self) -> bytes:
        topics = []
        for topic in self.topics.values():
            row = self.topic(topic)
            row.partitions = [self.partition(topic, index) for index in range(len(topic))]
            topics.append(row)
        return MetadataResponse(topics=topics).to_bytes(VERSION)


async def test_it_says_what_is_said_in_one_go() -> None:
    world = World(30, 7)
    assert await world.ask() == world.plain()
    assert await world.ask() == world.plain(), "and again, from what is kept"


async def test_no_turn_of_the_loop_describes_more_than_a_slice() -> None:
    """Also where one topic has nearly all partitions, and twenty clients ask at once."""
    world = World(3, 400)
    most, before = 0, 0
    asking = [asyncio.ensure_future(world.ask()) for _ in range(20)]
    while not all(task.done() for task in asking):
        await asyncio.sleep(0)
        most, before = max(most, world.clock.described - before), world.clock.described
    assert len({task.result() for task in asking}) == 1
    assert most <= 2 * IN_A_SLICE


async def test_what_stays_the_same_is_not_described_again() -> None:
    world = World(30, 7)
    await world.ask()
    described = world.clock.described
    await world.ask()
    assert world.clock.described == described
    delta = MetadataDelta()
    delta.touch(UUID(int=5), 0)
    world.tell(delta)
    await world.ask()
    assert world.clock.described == described + 7


@pytest.mark.parametrize("kind", ["created", "removed"])
async def test_topics_come_and_go(kind: str) -> None:
    world = World(5, 2)
    before = await world.ask()
    delta = MetadataDelta()
    gone = world.topics.pop("t3")
    delta.forget(RemovedTopic(gone.name, gone.topic_id, 2))
    world.tell(delta)
    without = await world.ask()
    assert without == world.plain()
    if kind == "created":
        world.topics["t3"] = gone
        delta = MetadataDelta()
        delta.created_topics.append(gone.topic_id)
        world.tell(delta)
        assert len(await world.ask()) == len(before)


async def test_a_change_in_the_middle_is_not_hidden_by_what_was_begun_before() -> None:
    world = World(20, 10)
    asking = asyncio.ensure_future(world.ask())
    while not world.clock.described:
        await asyncio.sleep(0)
    del world.topics["t19"]
    world.tell(_all_brokers())
    await asking
    assert await world.ask() == world.plain()


def _all_brokers() -> MetadataDelta:
    delta = MetadataDelta()
    delta.brokers.add(1)
    return delta


@pytest.mark.parametrize("version", range(8, 13))
def test_operations_are_put_into_a_row_that_is_kept(version: int) -> None:
    """As if it had been encoded with them."""
    parts = [MetadataResponsePartition(partition_index=index) for index in range(3)]

    def encoded(operations: int) -> bytes:
        writer = Writer()
        MetadataResponseTopic(name="t", partitions=parts, topic_authorized_operations=operations).encode(
            writer, version
        )
        return writer.getvalue()

    for operations in (0, 1 << 8, 3576, NOT_ASKED):
        assert with_operations(encoded(NOT_ASKED), version, operations) == encoded(operations)


async def test_clients_share_rows_but_not_what_they_may_do() -> None:
    world = World(3, 2)
    topics: Any = list(world.topics.values())

    async def ask(operations: Any) -> bytes:
        rows: Any = await world.rows.some(VERSION, operations, topics, world.topic, world.partition)
        return MetadataResponse(topics=rows).to_bytes(VERSION)

    plain = await ask(None)
    described = world.clock.described
    for mask in (256, 0, 3576):
        answer = MetadataResponse.from_bytes(await ask(lambda _, mask=mask: mask), VERSION)
        assert [topic.topic_authorized_operations for topic in answer.topics] == [mask] * 3
        assert await ask(None) == plain
    assert world.clock.described == described, "nothing was described again"
    everything: Any = await world.rows.all(VERSION, 3576, world.topic, world.partition)
    assert MetadataResponse(topics=everything).to_bytes(VERSION) == await ask(lambda _: 3576)
    assert await world.ask() == plain
