"""Runs are short, and say of each row what a list of all rows would say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.ids import TopicPartition
from headrace.spark.sink.landing import Landing, Runs, placed, runs_of

_TARGET = TopicPartition("t", 3)


def _pairs(runs: Runs) -> list[tuple[int, int]]:
    return [
        (source + step, target + step)
        for source, target, count in zip(*(column.tolist() for column in runs), strict=True)
        for step in range(count)
    ]


@given(st.lists(st.tuples(st.sets(st.integers(0, 60), min_size=1), st.integers(0, 5)), min_size=1))
def test_runs_say_where_each_row_is(batches: list[tuple[set[int], int]]) -> None:
    landing, expected = Landing(), []
    source = target = 0
    for places, gap in batches:
        offsets = sorted(source + place for place in places)
        target += gap
        landing.stored(_TARGET, np.array(offsets, np.int64), target)
        expected += [(offset, target + row) for row, offset in enumerate(offsets)]
        source, target = offsets[-1] + 1, target + len(offsets)
    runs = landing.runs()[_TARGET]
    assert _pairs(runs) == expected
    assert runs.rows == len(expected)
    ends = list(zip(runs.sources + runs.counts, runs.targets + runs.counts, strict=True))
    assert all(end != begin for end, begin in zip(ends, _begins(runs)[1:], strict=False)), (
        "a run could be longer"
    )
    (place,) = placed({_TARGET: runs})
    assert place == ("t", 3, len(expected), expected[0][0], expected[-1][0], expected[0][1], expected[-1][1])


def _begins(runs: Runs) -> list[tuple[int, int]]:
    return list(zip(runs.sources.tolist(), runs.targets.tolist(), strict=True))


def test_batches_that_follow_one_another_are_one_run() -> None:
    landing = Landing()
    landing.stored(_TARGET, np.arange(100, 200), 7)
    landing.stored(_TARGET, np.arange(200, 250), 107)
    runs = landing.runs()[_TARGET]
    assert [column.tolist() for column in runs] == [[100], [7], [150]]


def test_a_marker_of_the_target_begins_a_new_run() -> None:
    landing = Landing()
    landing.stored(_TARGET, np.arange(0, 10), 0)
    landing.stored(_TARGET, np.arange(10, 20), 11)
    assert [column.tolist() for column in landing.runs()[_TARGET]] == [[0, 10], [0, 11], [10, 10]]


def test_rows_out_of_order_are_runs_of_their_own() -> None:
    assert [column.tolist() for column in runs_of(np.array([5, 4, 6], np.int64), 0)] == [
        [5, 4, 6],
        [0, 1, 2],
        [1] * 3,
    ]
