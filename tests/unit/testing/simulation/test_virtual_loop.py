"""Time jumps, processes die between two steps, and one seed is one order."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from time import process_time

import pytest

from headrace.testing.simulation.virtual_loop import ProcessLoop
from headrace.testing.simulation.virtual_time import Deadlock, Scheduler, SimulationFailed


def test_an_hour_takes_no_time() -> None:
    scheduler = Scheduler()
    loop = ProcessLoop(scheduler, boot_seconds=77.0)
    began = process_time()
    before = loop.time()
    loop.run_until_complete(asyncio.sleep(3600))
    assert loop.time() - before == pytest.approx(3600)
    assert scheduler.now == pytest.approx(3600)
    assert process_time() - began < 5


def test_timeouts_count_in_virtual_time() -> None:
    loop = ProcessLoop(Scheduler(), boot_seconds=1e6)

    async def waits() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await asyncio.get_running_loop().create_future()
        return asyncio.get_running_loop().time()

    assert loop.run_until_complete(waits()) == pytest.approx(1e6 + 2.5)


def test_no_timer_goes_off_before_its_time() -> None:
    """Not even by a rounding error: who waits for what is left would wait for ever at one instant."""
    source = Random(1)

    async def waits_for(seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await loop.create_future()

    for _ in range(1000):
        loop = ProcessLoop(Scheduler(), boot_seconds=source.uniform(0, 100))
        loop.run_until_complete(asyncio.sleep(source.uniform(0, 50)))
        loop.run_until_complete(waits_for(15.0))


def test_each_process_runs_on_its_own_loop() -> None:
    scheduler = Scheduler()
    one, two = ProcessLoop(scheduler, "one"), ProcessLoop(scheduler, "two")
    seen: list[asyncio.AbstractEventLoop] = []

    async def looks() -> None:
        for _ in range(3):
            seen.append(asyncio.get_running_loop())
            await asyncio.sleep(0)

    first, second = one.create_task(looks()), two.create_task(looks())
    scheduler.run_until(lambda: first.done() and second.done())
    assert seen == [one, two] * 3


def test_a_killed_process_does_nothing_more_not_even_clean_up() -> None:
    scheduler = Scheduler()
    victim, other = ProcessLoop(scheduler), ProcessLoop(scheduler)
    done: list[str] = []

    async def works() -> None:
        try:
            while True:
                await asyncio.sleep(1)
                done.append("step")
        finally:
            done.append("finally")

    victim.create_task(works())
    other.call_later(2.5, victim.kill)
    other.run_until_complete(asyncio.sleep(10))
    assert done == ["step", "step"]


def test_a_paused_process_goes_on_where_it_was() -> None:
    scheduler = Scheduler()
    victim, other = ProcessLoop(scheduler), ProcessLoop(scheduler)
    times: list[float] = []

    async def works() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            times.append(scheduler.now)

    victim.create_task(works())
    other.call_later(1.5, victim.pause)
    other.call_later(7, victim.resume)
    other.run_until_complete(asyncio.sleep(20))
    assert times == pytest.approx([1, 7, 8])


def test_a_thread_takes_virtual_time_and_brings_its_result_or_its_error() -> None:
    loop = ProcessLoop(Scheduler(1))

    async def works() -> int:
        with pytest.raises(KeyError):
            await loop.run_in_executor(None, {}.__getitem__, "missing")
        return await loop.run_in_executor(None, max, 3, 4)

    assert loop.run_until_complete(works()) == 4
    assert loop.time() > 0


def test_nothing_left_to_happen_is_a_deadlock() -> None:
    loop = ProcessLoop(Scheduler())
    with pytest.raises(Deadlock):
        loop.run_until_complete(loop.create_future())


def test_a_process_that_never_waits_is_found() -> None:
    loop = ProcessLoop(Scheduler())

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Deadlock):
        loop.run_until_complete(spins())


def test_an_error_that_nobody_takes_fails_the_run() -> None:
    scheduler = Scheduler()
    loop = ProcessLoop(scheduler, "clumsy")

    def stumbles() -> None:
        raise RuntimeError("over its own feet")

    loop.call_later(1, stumbles)
    with pytest.raises(RuntimeError, match="own feet"):
        loop.run_until_complete(asyncio.sleep(2))


def test_a_task_whose_error_is_dropped_fails_the_run() -> None:
    scheduler = Scheduler()
    loop = ProcessLoop(scheduler, "clumsy")

    async def stumbles() -> None:
        raise RuntimeError("unseen")

    loop.create_task(stumbles())
    with pytest.raises(SimulationFailed, match="never retrieved"):
        loop.run_until_complete(asyncio.sleep(2))
    scheduler.bury()  # what was to sleep never began
