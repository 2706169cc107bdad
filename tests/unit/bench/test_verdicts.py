"""A verdict of the bench must not flatter: every rule has a case on both sides of its edge."""

from __future__ import annotations

import pytest
from bench.quantity import Comparison, Goal, Quantity, compare, cpu_ratio, throughput_ratio
from bench.table import NOW_AND_BEFORE, render


def comparison(quantity: Quantity, ours: tuple[float, ...], theirs: tuple[float, ...]) -> Comparison:
    return Comparison("case", "a case", quantity, ours, theirs)


@pytest.mark.parametrize(("ours", "verdict"), [(39.0, "met"), (40.0, "met"), (41.0, "missed")])
def test_cpu_is_judged_by_the_ratio_of_medians(ours: float, verdict: str) -> None:
    row = comparison(cpu_ratio("cpu", "µs", 0.4), (ours, 1.0, 900.0), (100.0, 100.0, 100.0))
    assert row.ratio == pytest.approx(ours / 100.0)
    assert row.verdict == verdict


def test_a_cpu_target_is_not_met_by_one_lucky_run() -> None:
    row = comparison(cpu_ratio("cpu", "µs", 0.4), (10.0, 60.0, 60.0), (100.0, 100.0, 100.0))
    assert row.spread == (0.1, 0.6)
    assert row.verdict == "missed"


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ((100.0, 101.0, 102.0), "met"),
        ((97.0, 98.0, 101.0), "met within spread"),
        ((97.0, 98.0, 99.0), "missed"),
    ],
)
def test_equal_throughput_is_told_no_finer_than_the_spread(ours: tuple[float, ...], verdict: str) -> None:
    assert comparison(throughput_ratio("rate", "records/s"), ours, (100.0,) * 3).verdict == verdict


def test_an_absolute_target_ignores_the_other_side() -> None:
    memory = Quantity("mb", "idle memory", "MB", Goal.VALUE_AT_MOST, 80.0)
    assert comparison(memory, (81.0,), (400.0,)).verdict == "missed"
    assert comparison(memory, (79.0,), (20.0,)).verdict == "met"
    assert comparison(memory, (79.0,), (400.0,)).relative_target == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("now", "before", "change"),
    [
        ((11.0, 12.0, 13.0), (9.0, 10.0, 10.5), "worse"),
        ((8.0, 7.0, 8.5), (9.0, 10.0, 11.0), "better"),
        ((11.0, 12.0, 9.0), (10.0, 10.0, 10.0), "within spread"),  # one run was better
        ((11.0, 10.5, 13.0), (10.0, 10.0, 12.0), "within spread"),  # what one earlier run gave as well
    ],
)
def test_a_change_is_more_than_the_spread(
    now: tuple[float, ...], before: tuple[float, ...], change: str
) -> None:
    assert comparison(cpu_ratio("cpu", "s", 0.5), now, before).change == change
    swapped = {"worse": "better", "better": "worse"}.get(change, change)
    assert comparison(throughput_ratio("rate", "records/s"), now, before).change == swapped
    assert change in render([comparison(cpu_ratio("cpu", "s", 0.5), now, before)], NOW_AND_BEFORE)


def test_spread_pairs_neighbouring_runs() -> None:
    row = comparison(cpu_ratio("cpu", "s", 0.5), (1.0, 4.0), (2.0, 4.0))
    assert row.spread == (0.5, 1.0)


def test_the_table_has_one_row_per_quantity_and_is_aligned() -> None:
    quantities = (cpu_ratio("cpu", "CPU s/GB", 0.5), throughput_ratio("rate", "records/s", None))
    rows = compare("c", "produce", quantities, [{"cpu": 1.0, "rate": 5e6}], [{"cpu": 4.0, "rate": 2.5e6}])
    lines = render(rows).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert "0.25" in lines[2]
    assert "≤ 0.5" in lines[2]
    assert "met" in lines[2]
    assert "5,000,000" in lines[3]
    assert "met" not in lines[3]
