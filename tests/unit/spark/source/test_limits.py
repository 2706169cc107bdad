"""A batch never has more records than it may, and always all that it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.source.limits import within


def at(*offsets: int) -> Offsets:
    return {("t", number): offset for number, offset in enumerate(offsets)}


def test_backlogs_share_the_limit_as_large_as_they_are() -> None:
    assert within(at(0, 0), at(300, 100), 100) == at(75, 25)
    assert within(at(50, 7), at(150, 7), 10) == at(60, 7)


def test_what_is_less_than_the_limit_is_read_whole() -> None:
    assert within(at(0, 5), at(3, 9), 7) == at(3, 9)


def test_no_partition_waits_for_the_others() -> None:
    assert within(at(0, 0), at(1_000_000, 1), 10) == at(9, 1)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("quiet", [0, 1, 2])
def test_a_limit_below_the_number_of_partitions_goes_round(most: int, quiet: int) -> None:
    """The busy ones grow for ever; one of them has something only now and then."""
    position, end = at(0, 0, 0, 0), at(1000, 1000, 1000, 1000)
    end["t", quiet] = 1
    for number in range(8):
        end["t", 3] = position["t", 3] + number % 2
        position = within(position, end, most)
    assert position["t", quiet] == 1


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
