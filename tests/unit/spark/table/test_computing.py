"""Which errors are of values, and who hears of a view that is behind."""

from __future__ import annotations

import pytest

from headrace.spark.lake.job import LoadFailed
from headrace.spark.table.computing import is_of_values
from headrace.spark.table.job import judge_views
from headrace.spark.table.plan import without


@pytest.mark.parametrize(
    ("state", "is_so"),
    [
        ("22003", True),  # a number out of range
        ("22012", True),  # a division by zero
        ("22018", True),  # a text that is no number
        ("P0001", True),  # raise_error
        ("42601", True),  # to_number
        ("KD001", False),  # a file that cannot be read
        ("42703", False),  # no such column
        ("XXKDA", False),  # a failure inside Spark
        ("HY008", False),  # cancelled
    ],
)
def test_errors_of_values_are_told_by_the_standard_s_class(state: str, is_so: bool) -> None:
    assert is_of_values(state) is is_so


def test_a_view_that_is_behind_is_made_at_the_next_start() -> None:
    assert without({"index": "a", "view": "b"}, {"view": "too large"}) == {"index": "a"}


def test_a_run_that_ends_tells_of_views_that_are_behind() -> None:
    judge_views({"orders": {}})
    with pytest.raises(LoadFailed, match="orders: view v cannot be computed"):
        judge_views({"others": {}, "orders": {"v": "view v cannot be computed"}})
