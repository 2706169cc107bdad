"""The token bucket that counts changes of metadata."""

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
