"""/topics/NAME/records/tail: what comes into a topic, as server-sent events.

A stream lasts a minute. Then the browser asks for the next one, which goes on at the same place. So whoever
may read the topic no more, or was given another password, reads on for a minute at most, and nothing is left
of a browser that is gone without a word.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from headrace.client.errors import ClientFailure
from headrace.console.http.acting import Offers, viewer_of
from headrace.console.http.decoding import decoder_of
from headrace.console.http.records import NextTurn, Source, hidden_of, topic_of
from headrace.console.http.sights import sight_of
from headrace.console.http.turns import left
from headrace.console.pages.page import NotThere
from headrace.console.records.search import Refused, Wanted, positions, wanted
from headrace.console.records.tailing import TURN_SECONDS, Turn
from headrace.console.records.texts import Decoding
from headrace.console.rendering import render, segment
from headrace.core.tasks import spawn

STREAM_SECONDS: Final = 60.0
MOST: Final = 20
"""Tails of all viewers together."""
MOST_OF_ONE: Final = 4
"""Of one viewer at one address: a browser has six connections to a server, and needs some for pages."""
AT_ONCE: Final = 2
"""Turns. They wait for each other, and no page waits for them."""
ALIVE_TURNS: Final = 5
"""After so many turns without a record a word is sent, or nobody would notice that the browser is gone."""
_TYPE: Final = "text/event-stream; charset=utf-8"


class Tails:
    """Of one console: how many there are, and their end."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self.ended = asyncio.Event()

    @property
    def open(self) -> int:
        return self._of.total()

    def end(self) -> None:
        """Of all: the console stops, and waits for nobody who looks on."""
        self.ended.set()

    @contextmanager
    def place(self, viewer: str) -> Iterator[None]:
        """Raises Refused where there are enough."""
        if self._of[viewer] >= MOST_OF_ONE:
            raise Refused(f"You follow {MOST_OF_ONE} topics from there already. Close one of them.")
        if self.open >= MOST:
            raise Refused(f"{MOST} topics are followed already, which is all that this console does at once.")
        self._of[viewer] += 1
        try:
            yield
        finally:
            self._of[viewer] -= 1
            self._of += Counter()  # forgets those at zero

    async def turn(self, turn: NextTurn, decoding: Decoding | None) -> Turn:
        async with self._turns:
            return await turn(decoding)


async def follow(request: Request) -> Response:
    _, topic = topic_of(request)
    hidden = hidden_of(request, topic.name)
    if hidden:
        raise NotThere(hidden)
    asked = wanted({**request.query_params, "live": "1"})
    last = positions(request.headers.get("last-event-id", ""))
    tails: Tails = request.app.state.tails
    events = _events(request, topic.name, asked._replace(after=last) if last else asked)
    return EventStream(events, tails.ended)


async def _events(request: Request, topic: str, asked: Wanted) -> AsyncGenerator[bytes, None]:
    tails: Tails = request.app.state.tails
    try:
        with tails.place(viewer_of(request)):
            async with aclosing(_turns(request, tails, topic, asked)) as events:
                async for event in events:
                    yield event
    except Refused as error:
        yield event_of("end", {"sentence": str(error)})


async def _turns(request: Request, tails: Tails, topic: str, asked: Wanted) -> AsyncGenerator[bytes, None]:
    source: Source = request.app.state.source
    until = _now() + STREAM_SECONDS
    quiet = 0
    yield b"retry: 1000\n\n"
    async with source.tail(topic, asked) as next_turn:
        while _now() < until:
            began = _now()
            try:
                turn = await tails.turn(next_turn, decoder_of(request, topic))
            except ClientFailure as error:
                yield event_of("problem", {"sentence": _sentence(error)})
            else:
                quiet = quiet + 1 if turn.is_quiet else 0
                if quiet % ALIVE_TURNS == 0:
                    yield event_of("", _shown(request, topic, turn), turn.positions)
            await asyncio.sleep(max(0.0, began + TURN_SECONDS - _now()))


def _shown(request: Request, topic: str, turn: Turn) -> dict[str, object]:
    path = f"/topics/{segment(topic)}/records"
    values = {
        "rows": turn.rows,
        "path": path,
        "shows_schemas": sight_of(request).may_see_settings(),
        "chooses": Offers(request).replay(topic),
    }
    return {
        "html": render("_record_rows.html", values) if turn.rows else "",
        "rows": len(turn.rows),
        "left_out": turn.left_out,
        "too_large": turn.too_large,
    }


def event_of(name: str, content: Mapping[str, object], number: str = "") -> bytes:
    """One line of JSON: what a stranger has written cannot end an event, or begin one."""
    lines = [f"event: {name}"] if name else []
    if number:
        lines.append(f"id: {number}")
    lines.append(f"data: {json.dumps(content)}")
    return ("\n".join(lines) + "\n\n").encode()


class EventStream(Response):
    """Ends when the browser leaves, when it stays and reads nothing of what is sent, and with the console."""

    def __init__(
        self, events: AsyncGenerator[bytes, None], ended: asyncio.Event, seconds: float = 2 * STREAM_SECONDS
    ) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"}, media_type=_TYPE)
        del self.headers["content-length"]
        self._events = events
        self._ended = ended
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 (starlette's)
        sending = spawn("a tail", self._send(send), is_awaited=True)
        leaving = spawn("the browser of a tail", left(receive), is_awaited=True)
        ending = spawn("the end of all tails", self._ended.wait(), is_awaited=True)
        every = sending, leaving, ending
        try:
            await asyncio.wait(every, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in every:
                task.cancel()
            outcomes = await asyncio.gather(*every, return_exceptions=True)
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        async with aclosing(self._events) as events:
            async for event in events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _sentence(error: ClientFailure) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _now() -> float:
    return asyncio.get_running_loop().time()


ROUTES: Final = [Route("/topics/{name}/records/tail", follow)]
