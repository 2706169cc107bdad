"""One waiter, timer or listener that raises: it is named, and those behind it get what they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.broker.coordinators.timers import ShardTimers
from headrace.broker.fetch.delayed_fetch import DelayedFetch, FetchPurgatory
from headrace.broker.fetch.watched_partition import FetchWatcher
from headrace.broker.storage.flusher import Flusher
from headrace.coordinators.decision import Decision
from headrace.coordinators.shard import TimerOperation
from headrace.core.completion import Completion
from headrace.core.errors import HeadraceError
from headrace.core.timers import TimerQueue
from headrace.log.os_disk import OsDisk
from headrace.metrics.histogram import LatencyHistogram
from headrace.network.response import DelayedResponse
from tests.unit.broker.coordinators.test_timers import HandLoop
from tests.unit.broker.serving import Server
from tests.unit.broker.test_delayed_produce import is_pending, produce
from tests.unit.log.material import append, open_at
from tests.unit.replication.replicas import fetch

SECONDS = 60


@pytest.fixture
async def complaints() -> list[str]:
    heard: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context["message"]))
    return heard


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(2)
    yield server
    server.close()


def stumble(*_: object) -> None:
    raise RuntimeError("a defect")


async def until(condition: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


async def test_fault_37_a_produce_that_raises_when_its_time_is_over(
    server: Server, complaints: list[str]
) -> None:
    first, second = produce(server, timeout_ms=0), produce(server, timeout_ms=0)
    cast(DelayedResponse, first).on_answered = stumble
    await until(lambda: not is_pending(second))
    assert complaints == ["a produce request whose time was over failed: RuntimeError('a defect')"]


async def test_fault_37_an_acknowledgement_that_raises_when_it_is_committed(
    server: Server, complaints: list[str]
) -> None:
    first, second = produce(server), produce(server)
    cast(DelayedResponse, first).on_answered = stumble
    fetch(server.partition, 2, 2)
    assert not is_pending(second)
    assert complaints == ["an acknowledgement that was held failed: RuntimeError('a defect')"]


async def test_fault_37_a_fetch_that_raises_when_its_time_is_over(complaints: list[str]) -> None:
    waiting = FetchPurgatory(asyncio.get_running_loop())
    answered: list[DelayedResponse] = []
    for answer in (stumble, answered.append):
        DelayedFetch(FetchWatcher(as_replica=False), 1, 0, answer, waiting)
    await until(lambda: not len(waiting))
    await until(lambda: answered)
    assert complaints == ["a fetch whose time was over failed: RuntimeError('a defect')"]


async def test_fault_37_a_timer_that_raises_leaves_the_others_their_times(complaints: list[str]) -> None:
    loop = HandLoop()
    fired: list[object] = []

    def on_due(name: object, _: TimerOperation) -> None:
        fired.append(name)
        if name == "session of a":
            stumble()

    timers = ShardTimers(TimerQueue(cast(asyncio.AbstractEventLoop, loop)), on_due)
    timers.set("session of a", 1000, lambda _now_ms: Decision())
    timers.set("session of b", 1000, lambda _now_ms: Decision())
    timers.set("session of c", 5000, lambda _now_ms: Decision())
    loop.go_to(101.0)
    timers.set("session of b", 1000, lambda _now_ms: Decision())
    loop.go_to(110.0)
    assert fired == ["session of a", "session of b", "session of b", "session of c"]
    assert complaints == ["the timer 'session of a' of a coordinator failed: RuntimeError('a defect')"]


async def test_fault_37_somebody_who_raises_after_a_sync(tmp_path: Path, complaints: list[str]) -> None:
    log = open_at(OsDisk(), str(tmp_path))
    append(log, b"a")
    told: list[HeadraceError | None] = []
    with ThreadPoolExecutor(1) as threads:
        flusher = Flusher(asyncio.get_running_loop(), threads, LatencyHistogram())
        for then in (stumble, told.append):
            flusher.flush(log, then)
        await until(lambda: told)
        await flusher.drain()
    log.close()
    assert told == [None]
    assert complaints == ["somebody who waited for a sync failed: RuntimeError('a defect')"]


async def test_fault_37_whoever_decides_a_promise_does_not_fail_by_its_listener(
    complaints: list[str],
) -> None:
    completion: Completion[str] = Completion()
    completion.when_done(stumble)
    completion.complete("answer")
    assert completion.result() == "answer"
    assert complaints == ["the listener of a completion failed: RuntimeError('a defect')"]
