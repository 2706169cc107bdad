"""What is counted of groups and transactions: some as it happens, the rest when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple


class CoordinatorCounts(NamedTuple):
    """The state of one moment."""

    classic_groups: Mapping[str, int] = {}
    """Coordinated here, by their state."""
    consumer_groups: Mapping[str, int] = {}
    transactional_ids: Mapping[str, int] = {}
    markers_without_leader: int = 0
    """Ends of transactions that wait, because nobody leads their partition, or it could not take them."""
    ends_to_write_again: int = 0
    """Transactions that are over everywhere, and whose coordinator could not write that down yet."""
    producers: int = 0
    """Remembered by the partitions of this broker."""
    partitions_with_late_transactions: int = 0


Counting = Callable[[int], Generator[None, None, CoordinatorCounts]]
"""Counts, and pauses after each so many of what it looks at."""


def _nothing(_size: int) -> Generator[None, None, CoordinatorCounts]:
    yield from ()
    return CoordinatorCounts()


class CoordinatorMetrics:
    __slots__ = ("count", "verification_failures")

    def __init__(self) -> None:
        self.verification_failures = 0
        """Partitions for which a transaction's coordinator could not be asked, or said no."""
        self.count: Counting = _nothing
