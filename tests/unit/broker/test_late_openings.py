"""Partitions that wait for their turn to be opened."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from uuid import UUID

from headrace.broker.broker import Broker
from headrace.broker.late_openings import AT_ONCE, LateOpenings

TOPIC, OTHER = UUID(int=1), UUID(int=2)
ME = 7


class Topic:
    """Of a hundred partitions, of which the odd ones are elsewhere."""

    name = "many"

    def __contains__(self, index: int) -> bool:
        return index < 100

    def replicas(self, index: int) -> tuple[int, ...]:
        return (1, 2) if index % 2 else (1, ME)


class World:
    """The broker, as far as openings look at it: it is its own image, clock and table of partitions."""

    broker_id = ME

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.topics: dict[UUID, Topic] = {TOPIC: Topic()}
        self.opened: dict[int, None] = {}
        self.registered = True
        self.now = 0.0
        self.cost = 0.0
        self.openings = LateOpenings(cast(Broker, self), cast(Any, self.host), lambda: self.registered)

    @property
    def image(self) -> World:
        return self

    clock = partitions = image

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        return self.topics.get(topic_id)

    def find(self, _name: str, index: int) -> bool | None:
        return True if index in self.opened else None

    def monotonic(self) -> float:
        return self.now

    def host(self, _topic: Topic, indexes: list[int]) -> None:
        self.now += self.cost
        for index in indexes:
            assert index not in self.opened
            self.opened[index] = None


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_all_are_opened_in_turns_of_a_few() -> None:
    world = World()
    for index in range(0, 100, 2):
        world.openings.add(TOPIC, index)
    await turns(1)
    assert len(world.opened) == AT_ONCE
    await turns(10)
    assert list(world.opened) == list(range(0, 100, 2))


async def test_a_slow_disk_makes_turns_shorter() -> None:
    world = World()
    world.cost = 0.02
    for index in range(0, 20, 2):
        world.openings.add(TOPIC, index)
    await turns(1)
    assert list(world.opened) == [0]
    async with asyncio.timeout(5):
        while len(world.opened) < 10:
            await asyncio.sleep(0.01)


async def test_what_is_gone_elsewhere_or_open_is_passed_over() -> None:
    world = World()
    world.opened[4] = None
    for index in (2, 3, 4, 300, 6):
        world.openings.add(TOPIC, index)
    world.openings.add(OTHER, 0)
    await turns(5)
    assert list(world.opened) == [4, 2, 6]


async def test_nothing_is_opened_for_another_process() -> None:
    world = World()
    world.registered = False
    world.openings.add(TOPIC, 0)
    await turns(3)
    assert not world.opened
    world.registered = True
    world.openings.add(TOPIC, 2)
    await turns(3)
    assert list(world.opened) == [2], "what waited before is found by the next look at everything"


async def test_a_stop_ends_it() -> None:
    world = World()
    for index in range(0, 100, 2):
        world.openings.add(TOPIC, index)
    await turns(1)
    world.openings.stop()
    await turns(5)
    assert len(world.opened) == AT_ONCE
