"""/topics/NAME/records: what is in a topic. Only these pages ask brokers for more than the snapshot has."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.console.http.acting import viewer_of
from headrace.console.http.answers import Watch, answer
from headrace.console.http.decoding import decoder_of
from headrace.console.http.sights import sight_of
from headrace.console.http.turns import Turns, for_one_who_waits
from headrace.console.pages.page import NotThere, Page
from headrace.console.pages.topic import topic_in
from headrace.console.records.reading import Found, one, read
from headrace.console.records.search import Wanted, wanted
from headrace.console.records.tailing import Tail, Turn
from headrace.console.records.texts import Decoding, Row, pretty
from headrace.console.records.timeline import Timeline, timeline
from headrace.core.ids import TopicPartition
from headrace.observe.snapshot import Snapshot, TopicSeen

KEPT_SECONDS: Final = 20.0
MOST_KEPT: Final = 64


NextTurn = Callable[[Decoding | None], Awaitable[Turn]]
"""Of a tail. Raises ClientFailure; then it can be asked for once more."""


class RecordsView(NamedTuple):
    name: str
    asked: Wanted
    found: Found | None
    timeline: Timeline | None
    partitions: int
    hidden: str
    """Why no record is shown; empty where they are."""
    shows_schemas: bool
    """The viewer may open the pages of subjects."""
    at_ms: int
    """When it was read."""


class RecordView(NamedTuple):
    name: str
    partition: int
    offset: int
    row: Row | None
    pretty: str
    shows_schemas: bool


class Source:
    """Where records come from."""

    def __init__(self, connect: Callable[[], Cluster], *, shows_records: bool = True) -> None:
        self.connect = connect
        self.shows_records = shows_records
        self._lines: dict[tuple[str, int], tuple[float, Timeline | None]] = {}

    async def read(self, topic: str, asked: Wanted, decoding: Decoding | None = None) -> Found:
        async with self.connect() as cluster:
            return await read(cluster, topic, asked, decoding)

    async def one(self, place: TopicPartition, offset: int, decoding: Decoding | None = None) -> Row | None:
        async with self.connect() as cluster:
            return await one(cluster, place, offset, decoding)

    @asynccontextmanager
    async def tail(self, topic: str, asked: Wanted) -> AsyncGenerator[NextTurn, None]:
        """Raises Refused."""
        tail = Tail(topic, asked)
        async with self.connect() as cluster:
            yield partial(tail.turn, cluster)

    async def timeline(self, seen: TopicSeen, partition: int | None) -> Timeline | None:
        """Some seconds old at most. None also where a leader is away: it is only a picture."""
        now = asyncio.get_running_loop().time()
        key = seen.name, -1 if partition is None else partition
        until, kept = self._lines.get(key, (0.0, None))
        if now < until:
            return kept
        places = [
            TopicPartition(seen.name, each.state.partition)
            for each in seen.partitions
            if each.ends is not None and partition in (None, each.state.partition)
        ]
        try:
            async with self.connect() as cluster:
                found = await timeline(cluster, places)
        except ClientFailure:
            found = None
        if len(self._lines) >= MOST_KEPT:
            self._lines.clear()
        self._lines[key] = now + KEPT_SECONDS, found
        return found


def named(request: Request, name: str) -> str:
    return unquote(request.path_params[name])


def number_of(request: Request, name: str) -> int:
    """Raises NotThere: Python itself refuses to read numbers of thousands of digits."""
    text = request.path_params[name]
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise NotThere("No page has this address.")
    return int(text)


async def list_records(request: Request) -> Response:
    seen, topic = topic_of(request)
    source: Source = request.app.state.source
    turns: Turns = request.app.state.turns
    asked = wanted(request.query_params)
    hidden = hidden_of(request, topic.name)
    found = line = None
    at_ms = time.time_ns() // 1_000_000
    if not hidden:

        async def read() -> tuple[Found, Timeline | None]:
            async with turns.turn(viewer_of(request)):
                records = await source.read(topic.name, asked, decoder_of(request, topic.name))
                return records, await source.timeline(topic, asked.partition)

        found, line = await for_one_who_waits(request.receive, read())
    shows = sight_of(request).may_see_settings()
    view = RecordsView(topic.name, asked, found, line, len(topic.partitions), hidden, shows, at_ms)
    page = Page("records.html", f"Records of {topic.name}", "topics", view)
    return answer(request, page, seen, request.app.state.watch.failing, refreshes=_is_newest(asked))


def _is_newest(asked: Wanted) -> bool:
    return asked.begin == "newest" and not asked.is_search and not asked.live


async def show_record(request: Request) -> Response:
    seen, topic = topic_of(request)
    hidden = hidden_of(request, topic.name)
    if hidden:
        raise NotThere(hidden)
    partition, offset = number_of(request, "partition"), number_of(request, "offset")
    if partition >= len(topic.partitions) or offset >= 2**62:
        raise NotThere(f"Topic {topic.name} has no such place.")
    place = TopicPartition(topic.name, partition)
    source: Source = request.app.state.source
    turns: Turns = request.app.state.turns

    async def read() -> Row | None:
        async with turns.turn(viewer_of(request)):
            return await source.one(place, offset, decoder_of(request, topic.name))

    found = await for_one_who_waits(request.receive, read())
    text = "" if found is None else pretty(found.value)
    view = RecordView(topic.name, partition, offset, found, text, sight_of(request).may_see_settings())
    page = Page("record.html", f"{topic.name}-{partition} {offset}", "topics", view)
    return answer(
        request, page, seen, request.app.state.watch.failing, status=200 if found else 404, refreshes=False
    )


def topic_of(request: Request) -> tuple[Snapshot, TopicSeen]:
    watch: Watch = request.app.state.watch
    seen = watch.snapshot
    if seen is None:
        raise NotThere("The first look at the cluster is under way.")
    mine = sight_of(request).of(seen)
    return mine, topic_in(mine, named(request, "name"))


def hidden_of(request: Request, topic: str) -> str:
    if not request.app.state.source.shows_records:
        return "This console was started with --no-records."
    if not sight_of(request).may_read(topic):
        return f"You may see that topic {topic} is there, and not read it: that takes READ on it."
    return ""


ROUTES: Final = [
    Route("/topics/{name}/records", list_records),
    Route("/topics/{name}/records/{partition}/{offset}", show_record),
]
