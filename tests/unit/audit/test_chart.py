"""The chart is well-formed, shows every window, and marks what is wrong."""

from __future__ import annotations

from xml.etree import ElementTree

from headrace.audit import chart
from headrace.audit.tally import Tally
from headrace.audit.verdict import Difference, Kind, State, Verdict

MINUTE = 60_000
SVG = "{http://www.w3.org/2000/svg}"


def verdict(number: int, state: State = State.CERTIFIED, kind: Kind | None = None) -> Verdict:
    tiers = {"producers": Tally(100), "log": Tally(100), "lake": Tally(100)}
    different = (
        () if kind is None else (Difference("lake", "log", 1, kind, 97 if kind is Kind.LOST else 100, 100),)
    )
    reasons = ("producer <checkout> & co is silent",) if state is State.INCOMPLETE else ()
    return Verdict("orders", number * MINUTE, MINUTE, state, tiers, different, reasons)


def drawn(verdicts: list[Verdict]) -> ElementTree.Element:
    return ElementTree.fromstring(chart.draw("a <topic>", verdicts))


def words(picture: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in picture.iter(f"{SVG}text")]


def boxes(picture: ElementTree.Element, kind: str) -> int:
    return sum(
        each.get("class") == kind and each.find(f"{SVG}title") is not None
        for each in picture.iter(f"{SVG}rect")
    )


def test_each_window_has_a_bar_for_each_tier_and_a_verdict() -> None:
    picture = drawn([verdict(number) for number in range(30)])
    assert boxes(picture, "bar") == 3 * 30
    assert boxes(picture, "certified") == 30
    assert "30 windows: 30 certified" in " ".join(words(picture))


def test_what_is_wrong_is_marked_at_its_tier_and_listed() -> None:
    verdicts = [verdict(0), verdict(1, State.DIFFERENT, Kind.LOST), verdict(2, State.DIFFERENT, Kind.ALTERED)]
    verdicts.append(verdict(3, State.INCOMPLETE))
    picture = drawn(verdicts)
    # The bar of the lake, and the verdict below it.
    assert boxes(picture, "different") == 2 * 2
    assert {"−3", "≠"} <= set(words(picture))
    listed = [text for text in words(picture) if "partition 1" in text or "silent" in text]
    assert len(listed) == 3
    assert "producer <checkout> & co is silent" in listed[-1]


def test_many_windows_share_columns_and_the_worst_is_shown() -> None:
    verdicts = [verdict(number) for number in range(1_000)]
    verdicts[501] = verdict(501, State.DIFFERENT, Kind.DOUBLED)
    picture = drawn(verdicts)
    assert 100 < boxes(picture, "certified") <= 240
    assert boxes(picture, "different") == 2


def test_a_page_needs_nothing_outside_it() -> None:
    page = chart.page([chart.draw("orders", [verdict(0)])], 0)
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_time_that_no_calendar_has_is_drawn_as_a_number() -> None:
    beyond = 1_700_000_000_000_000 // MINUTE
    picture = drawn([verdict(beyond), verdict(beyond + 1)])
    assert str(beyond * MINUTE) in words(picture)
