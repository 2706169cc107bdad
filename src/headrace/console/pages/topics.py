"""Topics: what is large, what flows, who is behind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.console.pages.page import Listing, Page, Scene, listing
from headrace.observe.history import History, Track, coarser
from headrace.observe.snapshot import WORST_FIRST, Snapshot, TopicSeen, certified_until

TILES: Final = 48
PREFIXES: Final = 12
POINTS: Final = 36
_PREFIX: Final = re.compile(r"[^._-]+[._-]")


class TopicRow(NamedTuple):
    name: str
    internal: bool
    condition: str
    partitions: int
    replicas: int
    records: int | None
    size_bytes: int | None
    rate_in: float | None
    rate_out: float | None
    groups: int
    lag: int | None
    late_ms: int | None
    certified_until_ms: int | None
    badness: int
    trend: Sequence[float | None] = ()


class Tile(NamedTuple):
    name: str
    size_bytes: int
    condition: str


class Prefix(NamedTuple):
    text: str
    topics: int


class TopicsView(NamedTuple):
    listing: Listing[TopicRow]
    tiles: Sequence[Tile]
    """The largest first."""
    others_bytes: int
    """Of topics that have no tile."""
    prefixes: Sequence[Prefix]
    internal: int
    """How many the cluster keeps for itself."""
    shows_internal: bool
    is_audited: bool
    reads: str
    """Why nobody knows who reads; empty where it is known."""


KEYS: Final = {
    name: attrgetter(field)
    for name, field in (
        ("name", "name"),
        ("partitions", "partitions"),
        ("records", "records"),
        ("size", "size_bytes"),
        ("in", "rate_in"),
        ("out", "rate_out"),
        ("late", "late_ms"),
        ("lag", "lag"),
        ("certified", "certified_until_ms"),
        ("health", "badness"),
    )
}


def topics(scene: Scene) -> Page:
    seen = scene.snapshot
    shows_internal = scene.query.get("internal") == "1"
    there = [topic for topic in seen.topics.values() if shows_internal or not topic.internal]
    rows = [_row(topic, seen) for topic in there]
    page = listing(rows, scene.query, KEYS, "name", attrgetter("name"))
    shown = page._replace(rows=[row._replace(trend=_trend(scene.history, row, seen)) for row in page.rows])
    chosen = [row for row in rows if page.found == len(rows) or _is_in(row.name, page.filter)]
    tiles, others = _tiles(chosen)
    view = TopicsView(
        shown,
        tiles,
        others,
        _prefixes(rows),
        sum(topic.internal for topic in seen.topics.values()),
        shows_internal,
        isinstance(seen.audit, Mapping),
        "" if seen.commits is None else seen.commits.reason,
    )
    return Page("topics.html", "Topics", "topics", view)


def _is_in(name: str, wanted: str) -> bool:
    return name.startswith(wanted[:-1]) if wanted.endswith("*") else wanted.lower() in name.lower()


def _trend(history: History, row: TopicRow, seen: Snapshot) -> Sequence[float | None]:
    return coarser(history.of(Track.IN, row.name, seen.at_ms), POINTS, mean=True)


def _row(topic: TopicSeen, seen: Snapshot) -> TopicRow:
    verdicts = seen.audit.get(topic.name, ()) if isinstance(seen.audit, Mapping) else ()
    return TopicRow(
        topic.name,
        topic.internal,
        topic.condition.value,
        len(topic.partitions),
        topic.replication_factor,
        topic.records,
        topic.size_bytes,
        topic.rate_in,
        topic.rate_out,
        len(topic.groups),
        topic.lag,
        topic.late_ms,
        certified_until(verdicts),
        len(WORST_FIRST) - WORST_FIRST.index(topic.condition),
    )


def _tiles(rows: Sequence[TopicRow]) -> tuple[list[Tile], int]:
    sized = sorted(
        (row for row in rows if row.size_bytes), key=lambda row: (-(row.size_bytes or 0), row.name)
    )
    tiles = [Tile(row.name, row.size_bytes or 0, row.condition) for row in sized[:TILES]]
    return tiles, sum(row.size_bytes or 0 for row in sized[TILES:])


def _prefixes(rows: Sequence[TopicRow]) -> list[Prefix]:
    """Beginnings that several topics share: a tree of one level, where people name topics by team."""
    deeper = _PREFIX
    counts = Counter(match.group() for row in rows if (match := deeper.match(row.name)))
    while len(counts) == 1 and len(rows) > 1 and next(iter(counts.values())) == len(rows):
        # All begin alike, which tells nothing: one part more.
        deeper = re.compile(deeper.pattern + _PREFIX.pattern)
        counts = Counter(match.group() for row in rows if (match := deeper.match(row.name)))
    return [Prefix(text, topics) for text, topics in counts.most_common(PREFIXES) if topics > 1]
