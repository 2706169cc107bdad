"""Long computations in slices: a generator that gives None again and again, and its result last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def result_of(slices: Iterable[T | None]) -> T:
    """All of it in one go."""
    *_, last = slices
    assert last is not None, "the result comes last"
    return last
