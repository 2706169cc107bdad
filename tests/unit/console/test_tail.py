"""A tail is bounded: what it reads in a turn, how many there are, and how long nobody has to listen to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.console.http.tail import MOST, MOST_OF_ONE, EventStream, Tails, event_of
from headrace.console.records.search import Refused, newest_positions, to_read, wanted
from headrace.console.records.tailing import ROWS, what_is_new
from headrace.core.ids import TopicPartition

Bounds = dict[TopicPartition, tuple[int, int]]


def places(*bounds: tuple[int, int]) -> Bounds:
    return {TopicPartition("t", at): each for at, each in enumerate(bounds)}


def test_what_is_new() -> None:
    zero, one = TopicPartition("t", 0), TopicPartition("t", 1)
    now = places((0, 50), (0, 9))
    assert what_is_new({}, now) == {zero: (50, 50), one: (9, 9)}, "nothing that was there before"
    assert what_is_new({zero: 40}, now) == {zero: (40, 50), one: (0, 9)}, "a partition that came later"
    assert what_is_new({zero: 60, one: 3}, places((0, 50), (5, 9))) == {zero: (50, 50), one: (5, 9)}
    assert what_is_new({zero: 3, one: 3}, places((7, 5), (0, 0)))[zero] == (5, 7), "a hidden transaction"


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 90), st.integers(0, 2000)), min_size=1, max_size=9)
)
def test_a_turn_reads_few_and_forgets_none(drawn: list[tuple[int, int, int]]) -> None:
    now = places(*((first, first + length) for _, first, length in drawn))
    new = what_is_new({TopicPartition("t", at): each[0] for at, each in enumerate(drawn)}, now)
    until = {place: end for place, (_, end) in new.items()}
    begin = newest_positions(new, ROWS)
    whole = sum(end - first for first, end in new.values())
    assert min(ROWS, whole) <= to_read(begin, until) <= ROWS + len(now)
    assert all(new[place][0] <= at < new[place][1] for place, at in begin.items())
    for place, (first, end) in new.items():
        assert now[place][0] <= first <= end == now[place][1]


def test_live_is_what_comes() -> None:
    asked = wanted({"live": "1", "from": "oldest", "filter": "true"})
    assert (asked.begin, asked.begins_live) == ("newest", True)
    assert not wanted({"live": "1", "filter": "true", "after": "0:5"}).begins_live
    assert not wanted({"live": "1"}).begins_live


def test_no_record_ends_an_event_or_begins_one() -> None:
    hostile = "a\n\ndata: taken\r\nevent: end\u2028id: 5\n\n"
    event = event_of("", {"html": hostile}, "0:7").decode()
    assert event.endswith("\n\n")
    lines = event.removesuffix("\n\n").split("\n")
    assert [line.partition(":")[0] for line in lines] == ["id", "data"]
    assert json.loads(lines[1].removeprefix("data: ")) == {"html": hostile}
    assert event.isascii()


def test_there_are_only_so_many() -> None:
    tails = Tails()
    kept = [tails.place("one") for _ in range(MOST_OF_ONE)]
    for each in kept:
        each.__enter__()
    with pytest.raises(Refused, match="Close one of them"), tails.place("one"):
        pass
    others = [tails.place(f"viewer {at}") for at in range(MOST - MOST_OF_ONE)]
    for each in others:
        each.__enter__()
    with pytest.raises(Refused, match="20 topics"), tails.place("another"):
        pass
    for each in (*kept, *others):
        each.__exit__(None, None, None)
    assert tails.open == 0
    with tails.place("one"):
        assert tails.open == 1


class Browser:
    """Reads, until it leaves or stalls."""

    def __init__(self, *, leaves_after: int = 10**9, stalls_after: int = 10**9) -> None:
        self.got: list[Any] = []
        self._leaves_after = leaves_after
        self._stalls_after = stalls_after
        self._left = asyncio.Event()

    async def receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.got.append(message)
        if len(self.got) >= self._leaves_after:
            self._left.set()
        if len(self.got) >= self._stalls_after:
            await asyncio.Event().wait()


def streamed(browser: Browser, seconds: float = 60.0, *, most: int = 10**9) -> bool:
    """Whether what the events come from was told that it is over."""
    is_over = False

    async def events() -> AsyncGenerator[bytes, None]:
        nonlocal is_over
        try:
            for _ in range(most):
                yield b"data: 1\n\n"
                await asyncio.sleep(0)
        finally:
            is_over = True

    asyncio.run(
        EventStream(events(), asyncio.Event(), seconds)({"type": "http"}, browser.receive, browser.send)
    )
    return is_over


def test_a_stream_ends_when_the_browser_leaves() -> None:
    browser = Browser(leaves_after=5)
    assert streamed(browser)
    assert 5 <= len(browser.got) < 50


def test_a_stream_ends_where_nobody_reads_it() -> None:
    browser = Browser(stalls_after=3)
    assert streamed(browser, 0.05)
    assert len(browser.got) == 3


def test_a_stream_that_is_over_says_so() -> None:
    browser = Browser()
    assert streamed(browser, most=2)
    assert [message.get("more_body") for message in browser.got] == [None, True, True, False]
    assert not any(name == b"content-length" for name, _ in browser.got[0]["headers"])


def test_a_console_that_stops_ends_them() -> None:
    tails = Tails()

    async def events() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n"
        tails.end()
        await asyncio.Event().wait()

    browser = Browser()
    asyncio.run(EventStream(events(), tails.ended)({"type": "http"}, browser.receive, browser.send))
    assert len(browser.got) == 2
