"""What differs between two versions of a schema: in few lines, and soon."""

from __future__ import annotations

import time

from headrace.console.pages.differences import MOST_COMPARED, MOST_SHOWN, Line, differences


def test_differences() -> None:
    before = [f"line {at}" for at in range(40)]
    after = [*before[:20], "new", *before[21:]]
    assert differences(before, before) == []
    assert differences(before, after) == [
        Line("…", "17 lines the same"),
        *(Line(" ", f"line {at}") for at in (17, 18, 19)),
        Line("-", "line 20"),
        Line("+", "new"),
        *(Line(" ", f"line {at}") for at in (21, 22, 23)),
        Line("…", "16 lines the same"),
    ]
    assert differences([], ["a"]) == [Line("+", "a")]


def test_texts_that_would_take_long_to_compare_do_not() -> None:
    began = time.process_time()
    lines = [f"{at % 99}" for at in range(MOST_COMPARED)]
    differences(lines, lines[::-1])
    many = [f"{at}" for at in range(50_000)]
    found = differences(many, many[::-1])
    assert time.process_time() - began < 3
    assert len(found) == MOST_SHOWN + 1
