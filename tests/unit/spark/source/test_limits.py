"""A batch never has more records than it may, always some, and about as many bytes as it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.limits import estimate, records_for, within


def at(*offsets: int) -> Offsets:
    return {("t", number): offset for number, offset in enumerate(offsets)}


def test_backlogs_share_the_limit_as_large_as_they_are() -> None:
    assert within(at(0, 0), at(300, 100), 100) == at(75, 25)
    assert within(at(50, 7), at(150, 7), 10) == at(60, 7)


def test_what_is_less_than_the_limit_is_read_whole() -> None:
    assert within(at(0, 5), at(3, 9), 7) == at(3, 9)


def test_no_partition_waits_for_the_others() -> None:
    assert within(at(0, 0), at(1_000_000, 1), 10) == at(9, 1)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), min_size=1, max_size=20),
    st.integers(1, 10**7),
)
def test_a_batch_has_all_that_it_may_and_goes_only_forward(ranges: list[tuple[int, int]], most: int) -> None:
    begin = at(*(first for first, _ in ranges))
    end = at(*(first + many for first, many in ranges))
    chosen = within(begin, end, most)
    assert chosen.keys() == end.keys()
    assert all(begin[each] <= chosen[each] <= end[each] for each in end)
    taken = sum(chosen.values()) - sum(begin.values())
    backlogs = [many for _, many in ranges if many]
    assert taken == min(most, sum(backlogs))
    if most >= len(backlogs):
        assert all(chosen[each] > begin[each] for each in end if end[each] > begin[each])


def test_bytes_become_records_by_the_size_of_each_partition() -> None:
    sizes = {("t", 0): 100.0, ("t", 1): 1000.0}
    most = records_for(at(0, 0), at(500, 500), 55_000, sizes)
    assert most == 100
    assert estimate(at(0, 0), within(at(0, 0), at(500, 500), most), sizes) == pytest.approx(55_000)


def test_partitions_without_a_sample_are_as_the_others() -> None:
    assert records_for(at(0, 0), at(100, 100), 1_000, {("t", 0): 100.0}) == 10
    assert estimate(at(0, 0), at(5, 5), {("t", 0): 100.0}) == 1_000


def test_a_record_larger_than_the_limit_is_read_alone() -> None:
    assert records_for(at(0), at(5), 10, {("t", 0): 1e6}) == 1


def test_without_samples_or_with_little_to_read_there_is_no_limit() -> None:
    assert records_for(at(0), at(5), 10, {}) is None
    assert records_for(at(0), at(5), 10_000, {("t", 0): 100.0}) is None
