"""A picture must not flatter: its colours, its log axis and its rows come from the records."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from bench import pictures
from bench.chart import LIGHT, THEMES, Chart, Row, as_cost, draw, of_run
from bench.quantity import Comparison, Goal, Quantity, cpu_ratio, throughput_ratio

SVG = "{http://www.w3.org/2000/svg}"


def drawing(*rows: Row) -> ElementTree.Element:
    return ElementTree.fromstring(draw(Chart("a <title>", "another", rows, "a day"), LIGHT))


def bars(root: ElementTree.Element) -> list[tuple[str, float, float]]:
    """Class, left and right end of the bars; those of the legend are left out."""
    found = [
        one for one in root.iter(f"{SVG}rect") if one.get("class") != "paper" and one.get("width") != "16"
    ]
    return [
        (one.get("class", ""), float(one.get("x", "")), float(one.get("x", "")) + float(one.get("width", "")))
        for one in found
    ]


def test_bars_lie_left_and_right_of_one_and_as_far_as_their_factor() -> None:
    better, worse = bars(drawing(Row("a", "", 0.25, (0.2, 0.3)), Row("b", "", 4.0, (3.0, 5.0))))
    assert better[0] == "better"
    assert worse[0] == "worse"
    assert better[2] == pytest.approx(worse[1], abs=0.2)
    assert better[2] - better[1] == pytest.approx(worse[2] - worse[1], abs=0.2)


@pytest.mark.parametrize(
    ("ratio", "spread", "kind"),
    [
        (0.5, (0.4, 0.9), "better"),
        (1.5, (1.1, 2.0), "worse"),
        (0.9, (0.7, 1.2), "better open"),
        (1.1, (0.7, 1.2), "worse open"),
    ],
)
def test_the_colour_is_of_the_other_side_and_not_of_a_target(
    ratio: float, spread: tuple[float, float], kind: str
) -> None:
    assert Row("a", "", ratio, spread, target=0.1).kind == kind


def test_a_rate_is_drawn_as_the_time_that_it_takes() -> None:
    rate = Comparison("case", "a case", throughput_ratio("rate", "records/s"), (400.0, 200.0), (100.0, 100.0))
    row = as_cost(rate, "a load")
    assert row.ratio == pytest.approx(1 / 3)
    assert row.spread == (0.25, 0.5)
    assert row.target == 1.0
    assert row.figures == "300 records/s, Kafka 100"


def test_a_large_ratio_is_not_cut() -> None:
    ((_, left, right),) = bars(drawing(Row("a", "", 80.0, (70.0, 90.0))))
    ((_, near, far),) = bars(drawing(Row("a", "", 40.0, (70.0, 90.0))))
    assert right - left > far - near


def test_a_run_without_a_place_on_the_axis_is_left_out() -> None:
    memory = Quantity("mb", "memory", "MB", Goal.NONE)
    shrunk = Comparison("case", "a case", memory, (-1.0,), (2.0,))
    fine = Comparison("case", "a case", cpu_ratio("cpu", "s", 0.5), (1.0,), (2.0,))
    assert [row.label for row in of_run([shrunk, fine], "Kafka", "").rows] == ["a case: broker CPU"]


def test_the_documents_have_what_the_records_say() -> None:
    assert [path.name for path, text in pictures.drawn().items() if path.read_text() != text] == []


def test_a_picture_has_six_rows_at_most_and_is_there_for_both_kinds_of_page() -> None:
    for name, chart in pictures.charts():
        assert 0 < len(chart.rows) <= pictures.MOST_ROWS, name
        for theme in THEMES:
            ElementTree.fromstring((pictures.IMAGES / f"{name}-{theme.name}.svg").read_text())


def test_the_first_picture_shows_what_is_worse_too() -> None:
    kinds = [row.kind for row in dict(pictures.charts())["bench-overview"].rows]
    assert sum(kind.startswith("worse") for kind in kinds) >= 2
