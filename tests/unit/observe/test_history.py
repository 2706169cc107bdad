"""Numbers of six hours, in buckets."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.observe.history import BUCKET_MS, BUCKETS, History, Ring, Track, coarser

NOON_MS = BUCKET_MS * 10_000_000


def test_a_rate_is_the_mean_of_its_bucket_and_a_lag_the_worst() -> None:
    history = History()
    for at, value in enumerate((10.0, 20.0, 60.0)):
        history.add(Track.IN, "orders", NOON_MS + at, value)
        history.add(Track.LAG, "billing", NOON_MS + at, value)
    assert history.of(Track.IN, "orders", NOON_MS)[-1] == 30.0
    assert history.of(Track.LAG, "billing", NOON_MS)[-1] == 60.0


def test_what_nobody_saw_is_none_and_not_zero() -> None:
    history = History()
    history.add(Track.IN, "orders", NOON_MS, 5.0)
    history.add(Track.IN, "orders", NOON_MS + 3 * BUCKET_MS, 7.0)
    assert history.of(Track.IN, "orders", NOON_MS + 3 * BUCKET_MS)[-5:] == [None, 5.0, None, None, 7.0]
    assert history.of(Track.IN, "other", NOON_MS) == [None] * BUCKETS


def test_a_clock_that_is_set_back_changes_nothing() -> None:
    ring = Ring()
    ring.add(NOON_MS, 5.0, mean=False)
    ring.add(NOON_MS - BUCKET_MS, 99.0, mean=False)
    assert [value for value in ring.until(NOON_MS) if value is not None] == [5.0]


def test_what_is_gone_is_forgotten() -> None:
    history = History()
    history.add(Track.IN, "orders", NOON_MS, 5.0)
    history.add(Track.IN, "clicks", NOON_MS, 6.0)
    history.keep(Track.IN, ["clicks"])
    assert history.of(Track.IN, "orders", NOON_MS)[-1] is None
    assert history.of(Track.IN, "clicks", NOON_MS)[-1] == 6.0


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 1000)), min_size=1))
def test_a_ring_tells_what_a_dictionary_would(added: list[tuple[int, int]]) -> None:
    ring, worst = Ring(), dict[int, int]()
    newest = 0
    for step, value in sorted(added, key=lambda each: each[0]):
        ring.add(NOON_MS + step * BUCKET_MS, value, mean=False)
        worst[step] = max(worst.get(step, value), value)
        newest = step
    expected = [worst.get(step) for step in range(newest - BUCKETS + 1, newest + 1)]
    assert ring.until(NOON_MS + newest * BUCKET_MS) == expected


def test_a_small_picture_keeps_the_worst() -> None:
    values = [None, 1.0, 9.0, None, None, None, 4.0, 2.0, None]
    assert coarser(values, 3, mean=False) == [9.0, None, 4.0]
    assert coarser(values, 3, mean=True) == [5.0, None, 3.0]
    assert all(each is None or not math.isnan(each) for each in coarser([None] * BUCKETS, 60, mean=True))


@pytest.mark.parametrize("track", list(Track))
def test_each_track_keeps_six_hours(track: Track) -> None:
    history = History()
    history.add(track, "x", NOON_MS, 1.0)
    assert history.of(track, "x", NOON_MS + 6 * 3_600_000 - BUCKET_MS)[0] == 1.0
    assert history.of(track, "x", NOON_MS + 6 * 3_600_000) == [None] * BUCKETS
