"""Who may ask the brokers for records next. Brokers must not pay for viewers, and no viewer for another one:
those who wait are served in rotation between viewers, and whoever has gone meanwhile is not served at all."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from starlette.types import Receive

from headrace.core.tasks import spawn

T = TypeVar("T")

AT_ONCE: Final = 4
OF_ONE: Final = 2
"""Of one viewer while others wait or not: so there is always a turn for somebody else."""
MOST_WAITING: Final = 16
"""Of one viewer: a page that is loaded anew, some tabs, some bookmarks."""


class TooManyWait(Exception):
    """Of this viewer; says what to do."""


class Gone(Exception):
    """The browser has closed its connection: nobody waits for an answer."""


async def for_one_who_waits(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Ends the work when the browser leaves. Raises Gone."""
    working = spawn("a page of records", work, is_awaited=True)
    leaving = spawn("the browser of a page", left(receive), is_awaited=True)
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    if working.cancelled():
        raise Gone
    return working.result()


async def left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Turns:
    def __init__(self, at_once: int = AT_ONCE, of_one: int = OF_ONE) -> None:
        self._at_once = at_once
        self._of_one = of_one
        self._running: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """Never of a viewer for whom nobody waits. Whose turn it was last is last."""

    @asynccontextmanager
    async def turn(self, viewer: str) -> AsyncGenerator[None, None]:
        """Raises TooManyWait."""
        await self._wait(viewer)
        try:
            yield
        finally:
            self._end(viewer)

    async def _wait(self, viewer: str) -> None:
        if self._is_free(viewer):
            self._begin(viewer)
            return
        theirs = self._waiting.setdefault(viewer, deque())
        if len(theirs) >= MOST_WAITING:
            raise TooManyWait(
                f"{MOST_WAITING} of your searches wait already. Close some, and look for this one then."
            )
        place = asyncio.get_running_loop().create_future()
        theirs.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.cancelled():
                self._forget(viewer, place)
            else:
                self._end(viewer)  # it had just been given
            raise

    def _is_free(self, viewer: str) -> bool:
        return sum(self._running.values()) < self._at_once and self._running.get(viewer, 0) < self._of_one

    def _begin(self, viewer: str) -> None:
        self._running[viewer] = self._running.get(viewer, 0) + 1

    def _end(self, viewer: str) -> None:
        self._running[viewer] -= 1
        if not self._running[viewer]:
            del self._running[viewer]
        self._hand_on()

    def _hand_on(self) -> None:
        """No await between a look and its act."""
        for viewer in list(self._waiting):
            theirs = self._waiting[viewer]
            while theirs and theirs[0].done():
                theirs.popleft()  # cancelled in this turn of the loop, and not forgotten yet
            if theirs and self._is_free(viewer):
                place = theirs.popleft()
                self._waiting.move_to_end(viewer)
                self._begin(viewer)
                place.set_result(None)
            if not theirs:
                del self._waiting[viewer]

    def _forget(self, viewer: str, place: asyncio.Future[None]) -> None:
        theirs = self._waiting.get(viewer)
        if theirs is not None and place in theirs:
            theirs.remove(place)
            if not theirs:
                del self._waiting[viewer]
