"""The README's moving picture: what was recorded, nothing that a page could not bear."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.first_minute import picture
from tests.first_minute.recording import COLUMNS, LINES, Event, Recording

_LARGEST = 200_000


def _words(svg: str) -> str:
    return "\n".join(
        "".join(text.itertext()) for text in ElementTree.fromstring(svg).iter() if text.tag.endswith("text")
    )


def test_the_files_are_drawn_from_the_record() -> None:
    assert [path.name for path, text in picture.drawn().items() if path.read_text() != text] == []


@pytest.mark.parametrize("theme", picture.THEMES)
def test_it_is_small_without_script_and_still_where_motion_is_unwanted(theme: picture.Theme) -> None:
    svg = picture.draw(Recording.load(picture.RECORD), theme)
    assert len(svg) < _LARGEST
    assert not re.search(r"<script|https?://(?!www\.w3\.org/2000/svg)|href|@import|url\(", svg)
    assert "prefers-reduced-motion" in svg


def test_every_command_and_its_answer_are_on_the_screen() -> None:
    events = Recording.load(picture.RECORD).events
    shown = _words(picture.drawn()[picture.IMAGES / "first-minute-dark.svg"])
    assert all(f"$ {event.text}" in shown for event in events if event.typed)
    answers = [line for event in events if not event.typed for line in event.text.split("\r\n")]
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in answers]
    assert all(line[:COLUMNS] in shown for line in plain)


def test_the_end_fits_on_the_screen() -> None:
    """Who sees no motion sees all of it."""
    assert len(picture.screenplay(Recording.load(picture.RECORD).events)) <= LINES


def test_waits_are_cut_and_the_order_is_kept() -> None:
    lines = picture.screenplay([Event(0.0, "sleep 60", typed=True), Event(60.0, "done\r\n")])
    assert [line.spans[-1].text for line in lines] == ["sleep 60", "done"]
    assert lines[0].at_s < lines[1].at_s < 60.0


def test_colours_become_classes_and_anything_else_is_refused() -> None:
    (span, rest) = picture.spans_of("\x1b[32m\x1b[1mhealthy\x1b[0m  3/3")
    assert span == ("healthy", frozenset(("good", "b")))
    assert rest == ("  3/3", frozenset())
    with pytest.raises(ValueError, match="more than colours"):
        list(picture.spans_of("\x1b[2Jgone"))


def test_long_lines_are_folded_as_the_terminal_does() -> None:
    parts = picture.folded([picture.Span("x" * (COLUMNS + 5), frozenset())])
    assert [sum(len(span.text) for span in part) for part in parts] == [COLUMNS, 5]
