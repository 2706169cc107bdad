"""How much room a log directory has, and when that is too little. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

LARGEST_DEFAULT: Final = 10 << 30
LEAST_TO_RESUME: Final = 1 << 20
"""After a write that found no room: what is written next has to fit with some likelihood."""


class Space(NamedTuple):
    free: int
    total: int


def floor_of(total: int, given: int | None) -> int:
    """Below it producers are refused."""
    return min(total // 20, LARGEST_DEFAULT) if given is None else given


def resumes_at(floor: int) -> int:
    """A tenth above the floor, so that it does not go on and off at each look."""
    return max(floor + floor // 10, LEAST_TO_RESUME)


def is_full(was_full: bool, free: int, floor: int) -> bool:
    return free < (resumes_at(floor) if was_full else floor)
