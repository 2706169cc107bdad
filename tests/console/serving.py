"""A console over a cluster that does not exist, on a port of its own."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.console.access.seen import AccessSeen
from headrace.console.changes.making import Changes
from headrace.console.http.app import application
from headrace.console.http.records import NextTurn, Source
from headrace.console.records.reading import Found
from headrace.console.records.search import Wanted, wanted
from headrace.console.records.tailing import Turn
from headrace.console.records.texts import ALONE, Decoding, Row, row
from headrace.console.records.timeline import Bucket, Timeline
from headrace.console.services.services import Services
from headrace.core.ids import TopicPartition
from headrace.observe.history import BUCKET_MS, BUCKETS, History, Track
from headrace.observe.look import Look
from headrace.observe.metadata_changes import MetadataChange
from headrace.observe.poller import Failing
from headrace.observe.snapshot import Snapshot, TopicSeen
from headrace.protocol.records import Record
from tests.console import made_up_services
from tests.console.made_up_access import SEEN, MadeUpAccess
from tests.unit.observe.made_up import NOW_MS, broken_look, empty_look, huge_look, small_look, snapshot_of
from tests.unit.observe.made_up_tiers import outage_look, tiered_look


class Still:
    """Looks at nothing: what it has seen was made up."""

    def __init__(self, snapshot: Snapshot | None, history: History, failing: Failing | None = None) -> None:
        self.snapshot = snapshot
        self.history = history
        self.failing = failing
        self.changes: tuple[MetadataChange, ...] = ()


def still(*looks: Look, waves: bool = False) -> Still:
    history = History()
    if waves:
        _make_waves(history, looks[-1])
    return Still(snapshot_of(*looks, history=history), history)


def _make_waves(history: History, look: Look) -> None:
    """Six hours of a day's rhythm, so that pictures are as they would be."""
    names = ["", *(topic.name for topic in look.topics[:200])]
    groups = [] if not isinstance(look.groups, dict) else list(look.groups)[:200]
    for at in range(BUCKETS):
        moment = NOW_MS - (BUCKETS - at) * BUCKET_MS
        for number, name in enumerate(names):
            wave = 60 + 30 * math.sin(at / 17 + number) + 6 * math.sin(at * 1.7 + number)
            history.add(Track.IN, name, moment, wave)
            history.add(Track.OUT, name, moment, wave * (0.9 if at % 50 > 10 else 0.6))
        for number, name in enumerate(groups):
            lag = max(0.0, 900 * math.sin(at / 23 + number))
            history.add(Track.LAG, name, moment, lag)
            history.add(Track.LATE, name, moment, lag * 40)


CLUSTERS: dict[str, Callable[[], Still]] = {
    "empty": lambda: still(empty_look(0), empty_look(1)),
    "small": lambda: still(small_look(0), small_look(1), waves=True),
    "huge": lambda: still(huge_look(0), huge_look(1), waves=True),
    "broken": lambda: still(broken_look(0), broken_look(1)),
    "tiered": lambda: still(tiered_look(0), tiered_look(1)),
    "outage": lambda: still(outage_look(0), outage_look(1)),
}


@contextmanager
def served(
    watch: Still,
    making: Changes | None = None,
    access: AccessSeen = SEEN,
    services: Services | None = None,
    source: Source | None = None,
) -> Iterator[str]:
    """The address."""
    app = application(
        watch,
        MadeUpSource() if source is None else source,
        making=making,
        access=MadeUpAccess(access),
        services=made_up_services.services() if services is None else services,
    )
    config = uvicorn.Config(app, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


HOSTILE: list[bytes | None] = [
    b"<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">",
    "right to left \u202egnp.exe\u2066 and back".encode(),
    b"\xff\xfe\x00broken",
    b"x" * 1_000_000,
    b'{"amount": 12, "note": "</pre><h1>not ours</h1>"}',
    "e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301 \U0001f600 \u200b\u2028".encode(),
    b"",
    None,
    b"\0\0\0\0\x02\x0e\x4e<script>document.title='taken'</script>\0",
    b"\0\0\0\0\x02\x0e\xff\xff\xff\xff\xff\x01",
    b"\0\0\0\x01\0of nobody",
]


class MadeUpSource(Source):
    """Has the worst records that we can think of, and a search that needs three steps."""

    def __init__(self) -> None:
        super().__init__(lambda: Cluster("127.0.0.1:1"))
        self.tails = self.turns = 0

    async def read(self, topic: str, asked: Wanted, decoding: Decoding | None = None) -> Found:
        rows = [
            row(0, Record(offset, NOW_MS + offset, b"<b>\x00", value, (("<i>", b"\xff"),)), decoding=decoding)
            for offset, value in enumerate(HOSTILE)
        ]
        if not asked.is_search:
            return Found(rows, [0, 1], len(rows), len(rows), 1000, 0.1, "", 0, 0, f"0:{len(rows)}")
        done = asked.done + 400_000
        after = f"0:{done}" if done < 1_000_000 else ""
        found = [] if after else rows[:2]
        return Found(
            found, [0, 1], min(done, 1_000_000), 1_000_000, 32_000_000, 2.0, after, 1, 3, f"0:{len(rows)}"
        )

    async def one(self, place: TopicPartition, offset: int, decoding: Decoding | None = None) -> Row | None:
        if offset >= len(HOSTILE):
            return None
        return row(0, Record(offset, NOW_MS, b"key", HOSTILE[offset], (("<i>", b"\xff"),)), ALONE, decoding)

    @asynccontextmanager
    async def tail(self, topic: str, asked: Wanted) -> AsyncGenerator[NextTurn, None]:
        """Each turn has the worst records once more, at new offsets."""
        done = max(asked.after.values(), default=0)

        async def turn(decoding: Decoding | None) -> Turn:
            nonlocal done
            if asked.key == "gone":
                raise ClientFailure("broker 2 does not answer")
            rows = (await self.read(topic, wanted({}), decoding)).rows
            done += len(rows)
            self.turns += 1
            return Turn([each._replace(offset=done + each.offset) for each in rows], 5, 0, f"0:{done}")

        self.tails += 1
        try:
            yield turn
        finally:
            self.tails -= 1

    async def timeline(self, seen: TopicSeen, partition: int | None) -> Timeline | None:
        buckets = [Bucket(NOW_MS + at * 60_000, at * at % 37) for at in range(40)]
        return Timeline(buckets, NOW_MS + 40 * 60_000, 2)
