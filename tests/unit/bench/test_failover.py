"""The figures of the failover bench: percentiles, the table, and what it calls a gap."""

from __future__ import annotations

import pytest
from bench.failover import Run, percentile, table


@pytest.mark.parametrize(
    ("share", "count", "expected"), [(0.5, 1, 0), (0.5, 4, 1), (0.95, 20, 18), (0.95, 30, 28), (1.0, 7, 6)]
)
def test_a_percentile_is_a_value_that_was_measured(share: float, count: int, expected: int) -> None:
    assert percentile([float(number) for number in reversed(range(count))], share) == expected


def test_the_table_shows_losses() -> None:
    runs = [Run("headrace", "kill", gap, 10, 10, 0, lost, 0) for gap, lost in ((100.0, 0), (300.0, 2))]
    assert table(runs).splitlines()[2:] == ["| kill | headrace | 2 | 100 | 300 | 300 | 20 | 2 | 0 |"]
