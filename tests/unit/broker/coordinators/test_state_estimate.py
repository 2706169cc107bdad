"""State that is added up, and measured when the sum reaches the limit."""

from __future__ import annotations

from headrace.broker.coordinators.state_estimate import MEASURE_SECONDS, StateEstimate
from headrace.core.memory import MemoryShare


class State:
    def __init__(self) -> None:
        self.size = 0
        self.now = 0.0
        self.measured = 0
        self.estimate = StateEstimate(MemoryShare("groups", 100), self.measure, lambda: self.now)

    def measure(self) -> int:
        self.measured += 1
        return self.size


def test_what_has_gone_is_found_when_the_limit_is_reached() -> None:
    state = State()
    assert [state.estimate.admits(40) for _ in range(3)] == [True, True, True]
    assert state.measured == 1
    assert state.estimate.share.used_bytes == 40


def test_whoever_does_not_fit_is_refused_and_measuring_is_not_repeated_at_once() -> None:
    state = State()
    state.size = 90
    assert state.estimate.admits(90)
    assert [state.estimate.admits(40) for _ in range(50)] == [False] * 50
    assert state.measured == 1
    assert state.estimate.share.refusals == 50
    state.size, state.now = 10, MEASURE_SECONDS
    assert state.estimate.admits(40)
    assert state.measured == 2
