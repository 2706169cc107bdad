"""The queue of timers, on a loop whose time is set by hand."""

from __future__ import annotations

import asyncio
from typing import cast

from headrace.core.timers import TimerQueue
from tests.unit.broker.coordinators.test_timers import HandLoop


def queue_on(loop: HandLoop, slots_per_second: int = 1000) -> TimerQueue:
    return TimerQueue(cast(asyncio.AbstractEventLoop, loop), slots_per_second)


def test_a_time_is_never_over_too_early_and_at_most_one_slot_late() -> None:
    loop = HandLoop()
    timers = queue_on(loop, 10)
    fired: list[tuple[float, float]] = []
    for hundredths in range(1, 40):
        due = loop.now + hundredths / 100
        timers.after(hundredths / 100, "it", lambda due=due: fired.append((due, loop.now)))  # type: ignore[misc]
    loop.go_to(101)
    assert len(fired) == 39
    assert all(0 <= round(now - due, 6) < 0.1 for due, now in fired)
    assert loop.calls == 4, "what falls into one slot shares a timer of the loop"


def test_what_is_due_at_once_waits_for_no_slot() -> None:
    """It is the next step of a decision: whoever asks next finds it done."""
    loop = HandLoop()
    loop.now = 100.00042
    timers = queue_on(loop)
    fired: list[str] = []
    timers.after(0, "next step", lambda: fired.append("next step"))
    loop.go_to(loop.now)
    assert fired == ["next step"]


def test_whoever_is_cancelled_by_one_of_the_same_slot_does_not_fire() -> None:
    loop = HandLoop()
    timers = queue_on(loop)
    fired: list[str] = []

    def on_first() -> None:
        fired.append("first")
        second.cancel()

    first = timers.after(1, "first", on_first)
    second = timers.after(1, "second", lambda: fired.append("second"))
    assert list(timers) == [first, second]
    loop.go_to(102)
    assert fired == ["first"]
    assert not len(timers)
    assert not first.is_scheduled


def test_whoever_is_put_off_by_one_of_the_same_slot_fires_once_and_later() -> None:
    loop = HandLoop()
    timers = queue_on(loop)
    fired: list[float] = []
    timers.after(1, "first", lambda: timers.schedule(second, 1))
    second = timers.after(1, "second", lambda: fired.append(loop.now))
    loop.go_to(110)
    assert fired == [102.0]
