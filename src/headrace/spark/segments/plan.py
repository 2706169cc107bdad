"""Which task reads which offsets. Pure.

A task of Python costs a quarter of a second of a processor before it reads anything, so tasks are large:
partitions with little share one, and a segment that is larger is cut. Where to cut is reckoned by offsets, as
if all records of a segment were equally large; the task finds the place in the segment's index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from headrace.arrow.history import ListedSegment

TASK_BYTES: Final = 250_000_000
Task = tuple["Span", ...]


class Span(NamedTuple):
    """Offsets of one partition, in segments that follow each other. Nothing in them is undecided."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    segments: tuple[ListedSegment, ...]

    @property
    def size(self) -> int:
        """About how many bytes it has in its segments."""
        return sum(_share(each, self.first_offset, self.next_offset) for each in self.segments)


def tasks(spans: Iterable[Span], task_bytes: int = TASK_BYTES) -> list[Task]:
    """The same offsets, each once and in the same order. By this reckoning, a task has so many bytes or less,
    and at most a record more."""
    found: list[Task] = []
    filling: list[Span] = []
    size = 0
    for piece in (piece for span in spans for piece in _pieces(span, task_bytes)):
        if filling and size + piece.size > task_bytes:
            found.append(tuple(_joined(filling)))
            filling, size = [], 0
        filling.append(piece)
        size += piece.size
    return [*found, tuple(_joined(filling))] if filling else found


def _pieces(span: Span, task_bytes: int) -> Iterable[Span]:
    """One segment each, or a part of one. Offsets between segments have no records."""
    for segment in span.segments:
        first = max(span.first_offset, segment.base_offset)
        end = min(span.next_offset, segment.next_offset)
        if first >= end:
            continue
        count = min(-(-_share(segment, first, end) // task_bytes) or 1, end - first)
        cuts = [first + (end - first) * number // count for number in range(count + 1)]
        for begin, following in pairwise(cuts):
            yield span._replace(first_offset=begin, next_offset=following, segments=(segment,))


def _share(segment: ListedSegment, first: int, end: int) -> int:
    offsets = min(end, segment.next_offset) - max(first, segment.base_offset)
    return segment.size * max(offsets, 0) // max(segment.next_offset - segment.base_offset, 1)


def _joined(pieces: Iterable[Span]) -> list[Span]:
    """Those of one partition as one."""
    found: list[Span] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is None or (last.topic, last.partition) != (piece.topic, piece.partition):
            found.append(piece)
            continue
        known = last.segments[-1] == piece.segments[0]
        segments = (*last.segments, *piece.segments[1 if known else 0 :])
        found[-1] = last._replace(next_offset=piece.next_offset, segments=segments)
    return found


def tasks_json(planned: Sequence[Task]) -> str:
    return json.dumps({"version": 1, "tasks": planned})


def tasks_of(text: str) -> list[Task]:
    """What `tasks_json` wrote. ValueError if it is of another version."""
    document = json.loads(text)
    if document["version"] != 1:
        raise ValueError(f"version {document['version']}, and 1 is known here")
    return [tuple(map(_span_of, each)) for each in document["tasks"]]


def _span_of(fields: Sequence[Any]) -> Span:
    topic, partition, first, end, segments = fields
    return Span(topic, partition, first, end, tuple(ListedSegment(*each) for each in segments))
