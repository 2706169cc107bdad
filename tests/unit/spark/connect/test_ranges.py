"""What a sink reads next."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.api import GiveUp
from headrace.core.ids import TopicPartition
from headrace.spark.connect.ranges import (
    Bounds,
    check_same,
    check_there,
    mark_of,
    next_ranges,
    starts,
)

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_target_counts_before_the_group_and_the_group_before_the_beginning() -> None:
    bounds = {A: Bounds(2, 9), B: Bounds(0, 9), TopicPartition("u", 0): Bounds(5, 9)}
    assert starts(bounds, {A: 4}, {A: 7, B: 3}) == {A: 4, B: 3, TopicPartition("u", 0): 5}


@pytest.mark.parametrize(("position", "text"), [(1, "are gone"), (10, "made anew")])
def test_records_that_are_gone_are_not_passed_over_in_silence(position: int, text: str) -> None:
    with pytest.raises(GiveUp, match=text):
        check_there(A, position, Bounds(2, 9))


def test_offsets_of_another_topic_of_the_same_name_mean_nothing() -> None:
    """Once it has grown past them nothing else shows it."""
    one, other = mark_of(UUID(int=1)), mark_of(UUID(int=2))
    check_same("t", one, one)
    check_same("t", "", one)
    check_same("t", "somebody else's", one)
    with pytest.raises(GiveUp, match="topic t was deleted and made anew"):
        check_same("t", other, one)


def test_nothing_new_is_no_range() -> None:
    assert next_ranges({A: 9, B: 0}, {A: Bounds(0, 9), B: Bounds(0, 0)}, 100) == {}


def test_what_one_does_not_need_goes_to_the_others() -> None:
    found = next_ranges({A: 0, B: 0}, {A: Bounds(0, 10), B: Bounds(0, 1000)}, 100)
    assert found == {A: (0, 10), B: (0, 90)}


@given(
    st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 50), st.integers(0, 500)), max_size=8),
    st.integers(1, 200),
)
def test_all_comes_in_bounded_batches(given: dict[int, tuple[int, int]], most: int) -> None:
    bounds = {TopicPartition("t", each): Bounds(first, first + more) for each, (first, more) in given.items()}
    positions = {partition: there.first for partition, there in bounds.items()}
    while ranges := next_ranges(positions, bounds, most):
        assert sum(end - first for first, end in ranges.values()) <= max(most, len(ranges))
        for partition, (first, end) in ranges.items():
            assert positions[partition] == first < end <= bounds[partition].end
            positions[partition] = end
    assert positions == {partition: there.end for partition, there in bounds.items()}
