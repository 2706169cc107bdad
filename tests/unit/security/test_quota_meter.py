"""A meter against a model that keeps every amount with its time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.quota_meter import WINDOW_MS, WINDOWS, Meter

STEPS = st.lists(st.tuples(st.integers(0, 25_000), st.integers(0, 1_000_000)), max_size=40)


@given(STEPS)
def test_the_rate_is_what_was_used_in_the_windows_over_their_time(steps: list[tuple[int, int]]) -> None:
    now_ms = 5_000_123
    meter = Meter(now_ms)
    used: list[tuple[int, int]] = []
    for pause_ms, amount in steps:
        now_ms += pause_ms
        meter.record(amount, now_ms)
        used.append((now_ms, amount))
        oldest = (now_ms // WINDOW_MS - WINDOWS + 1) * WINDOW_MS
        total = sum(each for at, each in used if at >= oldest)
        elapsed_ms = now_ms - oldest
        assert meter.rate(now_ms) == pytest.approx(total * 1000 / elapsed_ms)


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(0, 10_000))
def test_who_waits_as_long_as_is_asked_is_within_the_bound(bound: int, amount: int, later_ms: int) -> None:
    now_ms = 1_000_000
    meter = Meter(now_ms)
    now_ms += later_ms
    meter.record(amount, now_ms)
    wait_ms = meter.throttle_ms(bound, now_ms)
    assert (wait_ms == 0) == (meter.rate(now_ms) <= bound)
    elapsed_ms = (WINDOWS - 1) * WINDOW_MS + now_ms % WINDOW_MS
    # With the wait counted in, and a millisecond for rounding, what was used is within the bound.
    assert amount * 1000 / (elapsed_ms + wait_ms + 1) <= bound


def test_a_steady_client_at_its_bound_never_waits() -> None:
    now_ms = 0
    meter = Meter(now_ms)
    for _ in range(100):
        now_ms += 100
        meter.record(100, now_ms)
        assert meter.throttle_ms(1010, now_ms) == 0


def test_a_bound_of_nothing_is_waited_for_until_the_windows_are_over() -> None:
    meter = Meter(0)
    meter.record(1, 0)
    assert meter.throttle_ms(0, 0) == WINDOWS * WINDOW_MS
