"""Who has left is named a while longer, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from headrace.broker.cluster.recently_fenced import NAMED_SECONDS, RecentlyFencedBrokers
from headrace.controller.delta import MetadataDelta
from headrace.core.timers import TimerQueue
from tests.virtual_time import in_virtual_time


class Cluster:
    """The brokers that the metadata knows, and what is told of them."""

    def __init__(self, **fenced: bool) -> None:
        self.brokers = {
            int(name[1:]): SimpleNamespace(fenced=is_fenced) for name, is_fenced in fenced.items()
        }
        self.forgotten = 0
        self._listeners: list[Callable[[MetadataDelta], None]] = []
        loop = asyncio.get_running_loop()
        runtime: Any = SimpleNamespace(loop=loop, timers=TimerQueue(loop))
        metadata: Any = SimpleNamespace(
            image=SimpleNamespace(brokers=self.brokers),
            store=SimpleNamespace(subscribe=self._listeners.append),
        )
        self.recently_fenced = RecentlyFencedBrokers(runtime, metadata, self._forget_answers)

    def _forget_answers(self) -> None:
        self.forgotten += 1

    @property
    def named(self) -> list[int]:
        return [broker_id for broker_id in self.brokers if broker_id in self.recently_fenced.brokers]

    def change(self, broker_id: int, *, fenced: bool) -> None:
        self.brokers[broker_id] = SimpleNamespace(fenced=fenced)
        self._tell(broker_id)

    def unregister(self, broker_id: int) -> None:
        del self.brokers[broker_id]
        self._tell(broker_id)

    def _tell(self, broker_id: int) -> None:
        delta = MetadataDelta()
        delta.brokers.add(broker_id)
        for listener in self._listeners:
            listener(delta)


async def test_who_is_fenced_is_named_until_it_is_back() -> None:
    cluster = Cluster(b1=False, b2=False)
    assert cluster.named == []
    cluster.change(2, fenced=True)
    assert cluster.named == [2]
    cluster.change(2, fenced=False)
    assert cluster.named == []


async def test_who_is_new_is_not_named_before_it_is_ready() -> None:
    cluster = Cluster(b1=False)
    cluster.change(2, fenced=True)
    assert cluster.named == []
    cluster.change(2, fenced=False)
    cluster.change(2, fenced=True)
    assert cluster.named == [2]


async def test_who_is_unregistered_is_gone_at_once() -> None:
    cluster = Cluster(b1=False, b2=False)
    cluster.change(2, fenced=True)
    cluster.unregister(2)
    assert 2 not in cluster.recently_fenced.brokers
    cluster.change(2, fenced=True)
    assert cluster.named == []


async def test_a_broker_that_starts_names_all_that_it_has_read_of() -> None:
    assert Cluster(b1=False, b2=True, b3=True).named == [2, 3]


def test_after_a_while_it_is_forgotten_and_so_are_the_answers() -> None:
    async def test() -> None:
        cluster = Cluster(b1=False, b2=False)
        cluster.change(2, fenced=True)
        await asyncio.sleep(NAMED_SECONDS - 0.1)
        assert cluster.named == [2]
        assert cluster.forgotten == 0, "the delta has done it already"
        await asyncio.sleep(0.2)
        assert cluster.named == []
        assert cluster.forgotten == 1

    in_virtual_time(test)


def test_a_registration_on_the_way_back_begins_the_time_anew() -> None:
    async def test() -> None:
        cluster = Cluster(b1=False, b2=False)
        cluster.change(2, fenced=True)
        await asyncio.sleep(NAMED_SECONDS / 2)
        cluster.change(2, fenced=True)
        await asyncio.sleep(NAMED_SECONDS - 0.1)
        assert cluster.named == [2]
        assert cluster.forgotten == 0
        await asyncio.sleep(0.2)
        assert cluster.named == []
        assert cluster.forgotten == 1

    in_virtual_time(test)
