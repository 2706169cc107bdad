"""Leaders that were lost a moment ago: who asks about them waits for the decision, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster import suspect_brokers
from headrace.broker.cluster.suspect_brokers import SuspectBrokers
from headrace.controller.delta import MetadataDelta
from headrace.core.timers import TimerQueue


class Metadata:
    """Of three brokers, which live."""

    def __init__(self) -> None:
        self.alive = {1, 2, 3}
        self.store = self
        self._listeners: list[Callable[[MetadataDelta], None]] = []

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.alive

    def subscribe(self, listener: Callable[[MetadataDelta], None]) -> None:
        self._listeners.append(listener)

    def tell_of(self, *brokers: int) -> None:
        delta = MetadataDelta()
        delta.brokers.update(brokers)
        for listener in self._listeners:
            listener(delta)


def watching() -> tuple[SuspectBrokers, Any]:
    loop = asyncio.get_running_loop()
    runtime: Any = SimpleNamespace(loop=loop, timers=TimerQueue(loop))
    metadata: Any = Metadata()
    return SuspectBrokers(runtime, metadata), metadata


async def test_a_lost_broker_is_suspect_until_it_is_fenced() -> None:
    held, metadata = watching()
    held.lost(2)
    assert held
    assert 2 in held.brokers
    waiting = asyncio.ensure_future(held.settled())
    metadata.tell_of(3)
    await asyncio.sleep(0)
    assert not waiting.done()
    metadata.alive.discard(2)
    metadata.tell_of(2)
    await waiting
    assert not held


async def test_one_that_is_reached_again_was_never_gone() -> None:
    held, _ = watching()
    held.lost(2)
    waiting = asyncio.ensure_future(held.settled())
    held.reached(2)
    await waiting
    assert not held


async def test_what_is_decided_already_is_no_suspicion() -> None:
    held, metadata = watching()
    metadata.alive.discard(2)
    held.lost(2)
    assert not held


async def test_nobody_is_held_for_longer_than_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspect_brokers, "HOLD_SECONDS", 0.02)
    held, _ = watching()
    held.lost(2)
    async with asyncio.timeout(15):
        await held.settled()
    assert held


async def test_a_suspicion_that_nobody_settles_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspect_brokers, "FORGET_SECONDS", 0.02)
    held, _ = watching()
    held.lost(2)
    async with asyncio.timeout(15):
        while held:
            await asyncio.sleep(0.005)
