"""When producers are refused for want of room, and when they go on."""

from __future__ import annotations

import pytest

from headrace.log.free_space import LARGEST_DEFAULT, LEAST_TO_RESUME, floor_of, is_full, resumes_at

GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "given", "floor"),
    [
        (20 * GIB, None, GIB),
        (4000 * GIB, None, LARGEST_DEFAULT),
        (4000 * GIB, 5, 5),
        (20 * GIB, 0, 0),
    ],
)
def test_the_floor(total: int, given: int | None, floor: int) -> None:
    assert floor_of(total, given) == floor


def test_it_begins_at_the_floor_and_ends_a_tenth_above_it() -> None:
    floor = 100 * LEAST_TO_RESUME
    assert not is_full(False, floor, floor)
    assert is_full(False, floor - 1, floor)
    assert is_full(True, resumes_at(floor) - 1, floor)
    assert not is_full(True, resumes_at(floor), floor)
    assert resumes_at(floor) == floor + floor // 10


def test_without_a_floor_only_a_write_that_found_no_room_counts() -> None:
    assert not is_full(False, 0, 0)
    assert is_full(True, LEAST_TO_RESUME - 1, 0)
    assert not is_full(True, LEAST_TO_RESUME, 0)
