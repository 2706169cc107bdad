"""The token bucket of quotas: whoever waits as long as it is told gets all of its quota, and no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.security.token_bucket import TokenBucket


def test_the_last_token_buys_anything_and_the_debt_is_waited_for() -> None:
    bucket = TokenBucket(5.0, 10, 0)
    bucket.take(49, 0)
    assert bucket.wait_ms(0) == 0
    bucket.take(101, 0)
    assert bucket.wait_ms(0) == 20_000
    assert bucket.wait_ms(19_999) == 1
    assert bucket.wait_ms(20_000) == 0


def test_it_never_holds_more_than_its_burst() -> None:
    bucket = TokenBucket(5.0, 10, 0)
    assert bucket.is_full(0)
    bucket.take(-1000, 0)
    bucket.take(51, 100_000)
    assert bucket.wait_ms(100_000) == 200
    assert not bucket.is_full(110_000)
    assert bucket.is_full(110_200)


def test_what_is_given_back_can_be_taken_again() -> None:
    bucket = TokenBucket(1.0, 10, 0)
    bucket.take(15, 0)
    assert bucket.wait_ms(0) == 5_000
    bucket.take(-15, 0)
    assert bucket.is_full(0)


@given(st.floats(0.01, 1e4), st.lists(st.tuples(st.integers(0, 10_000), st.floats(0.1, 1e4)), max_size=50))
def test_in_any_time_no_more_than_rate_and_burst(rate: float, asked: list[tuple[int, float]]) -> None:
    bucket, now_ms, taken = TokenBucket(rate, 11, 0), 0, 0.0
    for pause_ms, amount in asked:
        now_ms += pause_ms
        if not bucket.wait_ms(now_ms):
            bucket.take(amount, now_ms)
            taken += amount
            assert taken - amount <= rate * (11 + now_ms / 1000) * 1.001 + 1e-6


@given(st.floats(10, 1e7), st.lists(st.floats(0.001, 20), max_size=100), st.integers(0, 10**9))
def test_whoever_obeys_is_held_to_the_rate(rate: float, seconds: list[float], start_ms: int) -> None:
    """Each amount is so many seconds' worth. What has been used is never more than the rate allows in the
    time, a burst, and the last amount."""
    bucket, now_ms, used = TokenBucket(rate, 10, start_ms), start_ms, 0.0
    for each in seconds:
        used += each * rate
        wait_ms = bucket.charge(each * rate, now_ms)
        assert used <= rate * ((now_ms - start_ms) / 1000 + 10 + each) * 1.001
        now_ms += max(wait_ms, 1)


@given(st.floats(1000, 1e7), st.floats(0.01, 30))
def test_a_greedy_client_gets_what_its_quota_says(rate: float, seconds: float) -> None:
    """After the burst it is the rate, within a hundredth: waiting is in whole milliseconds."""
    bucket, now_ms, used = TokenBucket(rate, 10, 0), 0, 0.0
    begun: tuple[int, float] | None = None
    for _ in range(int(10 / seconds) + 300):
        wait_ms = bucket.charge(seconds * rate, now_ms)
        if wait_ms and begun is None:
            begun = now_ms + wait_ms, used + seconds * rate
        used += seconds * rate
        now_ms += max(wait_ms, 1)
    assert begun is not None
    found = (used - begun[1]) * 1000 / (now_ms - begun[0])
    assert abs(found / rate - 1) < 0.06 if seconds < 0.02 else abs(found / rate - 1) < 0.01


def test_a_debt_is_paid_by_the_new_rate() -> None:
    bucket = TokenBucket(1.0, 10, 0)
    assert bucket.charge(1010, 0) == 1_000_000
    bucket.change_rate(50.0, 0)
    assert bucket.wait_ms(0) == 20_000
    bucket.change_rate(0.5, 0)
    assert bucket.wait_ms(0) == 2_000_000


def test_a_shared_debt_is_no_longer_than_a_burst_for_others() -> None:
    bucket = TokenBucket(10.0, 10, 0, is_shared=True)
    assert bucket.charge(100_000, 0) > 9_000_000  # for whoever took it
    assert bucket.wait_ms(0) == 10_000  # for all others
