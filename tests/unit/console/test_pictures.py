"""Pictures, by their numbers and byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.console.pictures.charts import area, sparkline
from headrace.console.pictures.lanes import lanes
from headrace.console.pictures.ribbons import ribbon
from headrace.console.pictures.squares import squarified

SIZES = st.lists(st.floats(0.1, 1e9), min_size=1, max_size=25).map(lambda each: sorted(each, reverse=True))


def test_a_line_with_a_gap() -> None:
    drawn = sparkline([0.0, 10.0, None, 5.0], 30, 12)
    assert drawn.line == "M0.0 11.0L10.0 1.0M30.0 6.0L31.0 6.0"
    assert drawn.fill == "M0.0 12L0.0 11.0L10.0 1.0L10.0 12ZM30.0 12L30.0 6.0L31.0 6.0L31.0 12Z"
    assert drawn.top == 10.0


def test_nothing_is_drawn_of_what_nobody_saw() -> None:
    assert sparkline([None, None], 30, 12).line == ""
    assert sparkline([], 30, 12).line == ""
    assert sparkline([0.0, 0.0], 30, 12).line == "M0.0 11.0L30.0 11.0"


def test_two_lines_have_one_scale() -> None:
    first, second = area([[10.0, 10.0], [5.0, 5.0]], 30, 12)
    assert (first.line, second.line) == ("M0.0 1.0L30.0 1.0", "M0.0 6.0L30.0 6.0")


def test_a_channel_is_as_wide_as_what_flows() -> None:
    drawn = ribbon([100.0, 100.0, 50.0, None], 100.0, 400, 40)
    assert drawn.gaps == [(300.0, 400.0)]
    assert drawn.path.startswith("M0.0 0.00C25.0 0.00 25.0 0.00 50.0 0.00")
    assert "250.0 10.00" in drawn.path, "half as wide in the third stage"
    assert ribbon([None] * 4, 0.0, 400, 40).path == ""
    assert ribbon([0.0, 0.001], 100.0, 100, 40).path, "what flows at all is seen"


@given(SIZES)
def test_areas_are_as_large_as_values_and_do_not_overlap(sizes: list[float]) -> None:
    tiles = squarified(sizes, 1000, 220)
    assert [tile.at for tile in tiles] == list(range(len(sizes)))
    for tile in tiles:
        share = sizes[tile.at] / sum(sizes)
        assert tile.width * tile.height == pytest.approx(share * 1000 * 220, rel=1e-4, abs=0.01)
        assert -0.01 <= tile.x <= tile.x + tile.width <= 1000 + 0.01
        assert -0.01 <= tile.y <= tile.y + tile.height <= 220 + 0.01
    assert sum(tile.width * tile.height for tile in tiles) == pytest.approx(220_000)


def test_no_values_no_tiles() -> None:
    assert squarified([], 10, 10) == []


@given(st.lists(st.integers(0, 10**12), min_size=4, max_size=4))
def test_lanes_go_on_where_the_one_before_ends(values: list[int]) -> None:
    only_remote, both, waiting, written = values
    drawn = lanes(only_remote, both, waiting, written, 400)
    if not sum(values):
        assert {each.width for each in drawn} == {0.0}
        return
    for value, span in zip(values[1:], drawn[1:], strict=True):
        assert (span.width > 1) == (value > 0), "what is there at all is seen"
    assert drawn.remote.x == 0
    assert drawn.remote.width == pytest.approx(drawn.local.x + drawn.local.width)
    assert drawn.waiting.x == pytest.approx(drawn.remote.width)
    assert drawn.written.x == pytest.approx(drawn.waiting.x + drawn.waiting.width)
    assert drawn.written.x + drawn.written.width == pytest.approx(400)
    widest = max(values)
    assert drawn.local.width == pytest.approx(
        400 * values[1] / sum(values), abs=3 if values[1] < widest else 5
    )
