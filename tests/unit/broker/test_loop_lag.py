"""How late the loop is: what it tells of itself, and when it speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headrace.broker.process.loop_lag import BAD_MS, EVERY_SECONDS, LoopLag, RecentLag
from headrace.broker.runtime.health_report import HealthReport
from headrace.config.health import HEALTH
from headrace.metrics.histogram import LatencyHistogram


def lag_of(*stalls_us: int, calm: int = 500) -> RecentLag:
    recent = RecentLag()
    for _ in range(calm):
        recent.note(300)
    for each in stalls_us:
        recent.note(each)
    return recent


def test_a_calm_loop_is_not_late() -> None:
    found = lag_of().p99_ms()
    assert found is not None
    assert found <= 1


def test_nothing_is_said_of_a_start() -> None:
    assert lag_of(calm=99).p99_ms() is None


def test_one_long_stall_counts_for_all_who_came_meanwhile() -> None:
    found = lag_of(3_000_000).p99_ms()
    assert found is not None
    assert found > 2 * BAD_MS, (
        "one timer of five hundred is less than one in a hundred, but thirty were missed"
    )


def test_a_short_stall_is_no_habit() -> None:
    found = lag_of(400_000).p99_ms()
    assert found is not None
    assert found < BAD_MS


def test_what_is_long_ago_is_forgotten() -> None:
    recent = lag_of(3_000_000)
    for _ in range(600):
        recent.note(100)
    found = recent.p99_ms()
    assert found is not None
    assert found < 1


class ScriptedLoop:
    """Calls a timer as late as it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: tuple[float, Callable[..., None], tuple[Any, ...]] = (0, print, ())

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[..., None], *args: Any) -> None:
        self.due = (when, call, args)

    def turn(self, late_seconds: float) -> None:
        when, call, args = self.due
        self.now = when + late_seconds
        call(*args)


async def told_after(lates: list[float]) -> dict[str, str]:
    scripted: Any = ScriptedLoop()
    loop: asyncio.AbstractEventLoop = scripted
    health, histogram = HealthReport(), LatencyHistogram()
    lag = LoopLag(loop, histogram)
    lag.report_to(health)
    lag.start()
    for late in lates:
        scripted.turn(late)
    assert histogram.count == len(lates), "what is exported counts timers"
    assert scripted.due[0] == scripted.now + EVERY_SECONDS
    return {figure.name.removeprefix(f"{HEALTH}."): figure.value for figure in await health.tell()}


async def test_a_broker_speaks_of_a_loop_that_is_late_and_says_what_to_do() -> None:
    told = await told_after([0.001] * 300 + [0.9] * 10)
    assert int(told["loop.lag.p99.ms"]) > BAD_MS
    assert "its event loop is late" in told["problem.loop"]
    assert "headrace cluster rebalance" in told["problem.loop"]


async def test_a_broker_says_nothing_of_a_loop_that_is_on_time() -> None:
    told = await told_after([0.001] * 300 + [0.04] * 20)
    assert int(told["loop.lag.p99.ms"]) < BAD_MS
    assert "problem.loop" not in told
