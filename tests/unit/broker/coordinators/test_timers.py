"""The timers of a shard, on a loop whose time is set by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.coordinators.timers import ShardTimers
from headrace.coordinators.decision import Decision
from headrace.coordinators.shard import TimerOperation
from headrace.core.timers import TimerQueue
from tests.unit.broker.coordinators.counters import Counters, counted


class Handle:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.is_cancelled = at, call, False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandLoop:
    """As much of a loop as timers need."""

    def __init__(self) -> None:
        self.now = 100.0
        self.handles: list[Handle] = []
        self.calls = 0

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[..., None], *args: object) -> Handle:
        self.calls += 1
        self.handles.append(Handle(at, partial(call, *args)))
        return self.handles[-1]

    def go_to(self, now: float) -> None:
        while True:
            self.handles = [each for each in self.handles if not each.is_cancelled]
            due = min(self.handles, key=lambda each: each.at, default=None)
            if due is None or due.at > now:
                break
            self.handles.remove(due)
            self.now = max(self.now, due.at)
            due.call()
        self.now = now


class Bench:
    def __init__(self) -> None:
        self.loop = HandLoop()
        self.fired: list[tuple[str, float]] = []
        self.timers = ShardTimers(TimerQueue(cast(asyncio.AbstractEventLoop, self.loop)), self._on_due)

    def _on_due(self, _name: object, operation: TimerOperation) -> None:
        operation(0)

    def set(self, name: str, delay_ms: float, then: Callable[[], None] = lambda: None) -> None:
        def run(_now_ms: int) -> Decision[Any]:
            self.fired.append((name, round(self.loop.now, 3)))
            then()
            return Decision()

        self.timers.set(name, delay_ms, run)


def test_timers_fire_in_order_and_once() -> None:
    bench = Bench()
    bench.set("b", 2_000)
    bench.set("a", 1_000)
    bench.loop.go_to(110)
    assert bench.fired == [("a", 101.0), ("b", 102.0)]
    assert not len(bench.timers)
    assert not bench.loop.handles


def test_a_timer_that_is_moved_later_costs_the_loop_nothing() -> None:
    bench = Bench()
    bench.set("session", 10_000)
    for second in range(1, 9):
        bench.loop.go_to(100.0 + second)
        bench.set("session", 10_000)
    assert bench.loop.calls == 1
    bench.loop.go_to(117.9)
    assert not bench.fired
    bench.loop.go_to(120)
    assert bench.fired == [("session", 118.0)]


def test_a_timer_that_is_moved_earlier_fires_earlier_and_once() -> None:
    bench = Bench()
    bench.set("a", 5_000)
    bench.set("a", 1_000)
    bench.loop.go_to(110)
    assert bench.fired == [("a", 101.0)]


def test_a_timer_may_end_or_move_another_and_set_itself() -> None:
    bench = Bench()

    def then() -> None:
        bench.timers.cancel("b")
        bench.set("c", 1_000)
        bench.set("a", 500)

    bench.set("a", 1_000, then)
    bench.set("b", 1_000)
    bench.set("c", 1_000)
    bench.loop.go_to(110)
    assert bench.fired == [("a", 101.0), ("a", 101.5), ("c", 102.0)]


def test_a_stop_ends_them_all() -> None:
    bench = Bench()
    bench.set("a", 1_000, bench.timers.stop)
    bench.set("b", 1_000)
    bench.loop.go_to(110)
    assert bench.fired == [("a", 101.0)]


def test_timers_that_are_gone_do_not_pile_up() -> None:
    bench = Bench()
    for number in range(1000):
        bench.set(f"{number}", 1_000_000)
        bench.timers.cancel(f"{number}")
    assert not len(bench.timers)
    assert bench.loop.calls == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["set", "cancel", "wait"]), st.integers(0, 20)),
        max_size=40,
    )
)
def test_they_fire_exactly_when_a_plain_table_says(steps: list[tuple[str, str, int]]) -> None:
    bench = Bench()
    due: dict[str, float] = {}
    expected: list[tuple[str, float]] = []

    def wait_until(end: float) -> None:
        for name in sorted(due, key=lambda each: due[each]):
            if due[name] <= end:
                expected.append((name, due.pop(name)))
        bench.loop.go_to(end)

    for name, what, number in steps:
        if what == "set":
            bench.set(name, number * 1_000)
            due[name] = bench.loop.now + number
        elif what == "cancel":
            bench.timers.cancel(name)
            due.pop(name, None)
        else:
            wait_until(bench.loop.now + number)
    wait_until(bench.loop.now + 100)
    assert sorted(bench.fired, key=lambda each: (each[1], each[0])) == sorted(
        expected, key=lambda each: (each[1], each[0])
    )
    assert [at for _, at in bench.fired] == [at for _, at in expected]


async def test_what_a_timer_decides_is_written_like_any_other_decision() -> None:
    counters = Counters()
    shard = await counters.loaded()
    shard.timers.set("x", 1, lambda _now_ms: Decision((counted("a", 5),), effects=("done",)))
    async with asyncio.timeout(15):
        while not counters.effects:
            await asyncio.sleep(0.001)
    assert (shard.numbers, counters.partition.log.end_offset) == ({"a": 5}, 1)
    assert counters.effects == [(0, 1, "done")]
