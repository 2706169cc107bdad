"""How numbers, times and strangers' names are said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.console import words


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (None, "–"),
        (0, "0"),
        (0.25, "0.2"),
        (999, "999"),
        (9999, "9,999"),
        (12_345, "12.3 k"),
        (4.5e6, "4.5 M"),
        (2e15, "2,000 T"),
    ],
)
def test_short(number: float | None, said: str) -> None:
    assert words.short(number) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB".replace("k", "K")), (1_500_000, "1.5 MB"), (None, "–")],
)
def test_size(number: float | None, said: str) -> None:
    assert words.size(number) == said


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0 ms"),
        (1200, "1.2 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (90_061_000, "1 d 1 h"),
        (None, "–"),
    ],
)
def test_duration(milliseconds: float | None, said: str) -> None:
    assert words.duration(milliseconds) == said


def test_nothing_left_to_read_is_no_time() -> None:
    assert words.late(0) == "none"
    assert words.late(None) == "–"


def test_moments_that_no_calendar_has_stay_numbers() -> None:
    assert words.moment(1_760_000_000_000) == "2025-10-09 08:53:20"
    assert words.precise(1_760_000_000_123) == "2025-10-09 08:53:20.123"
    assert words.moment(2**62) == str(2**62)
    assert words.precise(-1) == "-1"


def test_what_a_browser_would_hide_or_obey_is_visible() -> None:
    assert words.visible("a\u202eb\u200b\n") == "a⟨U+202E⟩b⟨U+200B⟩⟨U+000A⟩"
    assert words.visible("a\nb", keep="\n") == "a\nb"
    assert words.visible("grüße 注文 🙂") == "grüße 注文 🙂"


@given(st.text(max_size=30))
def test_nothing_hidden_is_left(text: str) -> None:
    shown = words.visible(text)
    assert shown.isprintable() or all(each.isprintable() or each.isspace() for each in shown)
    assert not {"\u202e", "\u200f", "\x00", "\n", "\u2066"} & set(shown)


def test_commands_in_sentences() -> None:
    assert words.parts_of("run `a b` now") == [("run ", False), ("a b", True), (" now", False)]
    assert words.parts_of("`a") == [("`a", False)]
