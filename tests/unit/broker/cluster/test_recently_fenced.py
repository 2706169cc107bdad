"""Who has left is named a while longer, and nobody else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from headrace.broker.cluster.recently_fenced import NAMED_SECONDS, RecentlyFencedBrokers
from headrace.controller.delta import MetadataDelta
from headrace.core.timers import TimerQueue
from tests.virtual_time import in_virtual_time


class World:
    """As much of a broker as it looks at."""

    def __init__(self, **fenced: bool) -> None:
        self.loop = asyncio.get_running_loop()
        self.timers = TimerQueue(self.loop)
        self.image = SimpleNamespace(brokers={})
        self.dispatcher = self
        self.forgotten = 0
        for name, is_fenced in fenced.items():
            self.image.brokers[int(name[1:])] = SimpleNamespace(fenced=is_fenced)
        world: Any = self
        self.recently_fenced = RecentlyFencedBrokers(world)
        self.recently_fenced.begin()

    def forget_answers(self) -> None:
        self.forgotten += 1

    @property
    def named(self) -> list[int]:
        return [broker_id for broker_id in self.image.brokers if broker_id in self.recently_fenced.brokers]

    def change(self, broker_id: int, *, fenced: bool) -> None:
        self.image.brokers[broker_id] = SimpleNamespace(fenced=fenced)
        self._told(broker_id)

    def unregister(self, broker_id: int) -> None:
        del self.image.brokers[broker_id]
        self._told(broker_id)

    def _told(self, broker_id: int) -> None:
        delta = MetadataDelta()
        delta.brokers.add(broker_id)
        self.recently_fenced.on_delta(delta)


async def test_who_is_fenced_is_named_until_it_is_back() -> None:
    world = World(b1=False, b2=False)
    assert world.named == []
    world.change(2, fenced=True)
    assert world.named == [2]
    world.change(2, fenced=False)
    assert world.named == []


async def test_who_is_new_is_not_named_before_it_is_ready() -> None:
    world = World(b1=False)
    world.change(2, fenced=True)
    assert world.named == []
    world.change(2, fenced=False)
    world.change(2, fenced=True)
    assert world.named == [2]


async def test_who_is_unregistered_is_gone_at_once() -> None:
    world = World(b1=False, b2=False)
    world.change(2, fenced=True)
    world.unregister(2)
    assert 2 not in world.recently_fenced.brokers
    world.change(2, fenced=True)
    assert world.named == []


async def test_a_broker_that_starts_names_all_that_it_has_read_of() -> None:
    assert World(b1=False, b2=True, b3=True).named == [2, 3]


def test_after_a_while_it_is_forgotten_and_so_are_the_answers() -> None:
    async def test() -> None:
        world = World(b1=False, b2=False)
        world.change(2, fenced=True)
        await asyncio.sleep(NAMED_SECONDS - 0.1)
        assert world.named == [2]
        assert world.forgotten == 0, "the delta has done it already"
        await asyncio.sleep(0.2)
        assert world.named == []
        assert world.forgotten == 1

    in_virtual_time(test)


def test_a_registration_on_the_way_back_begins_the_time_anew() -> None:
    async def test() -> None:
        world = World(b1=False, b2=False)
        world.change(2, fenced=True)
        await asyncio.sleep(NAMED_SECONDS / 2)
        world.change(2, fenced=True)
        await asyncio.sleep(NAMED_SECONDS - 0.1)
        assert world.named == [2]
        assert world.forgotten == 0
        await asyncio.sleep(0.2)
        assert world.named == []
        assert world.forgotten == 1

    in_virtual_time(test)
