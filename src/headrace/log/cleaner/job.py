"""What one pass of the cleaner over one log needs to know, and what it says. Plain values, which travel."""

from __future__ import annotations

import json
from typing import NamedTuple

from headrace.log.transaction_index import AbortedTransaction


class SourceSegment(NamedTuple):
    base_offset: int
    size: int


class LastOfProducer(NamedTuple):
    """The batch whose header carries what a partition has to remember of a producer."""

    epoch: int
    last_offset: int
    """Of its last data; -1 if only its marker is left."""


class CleaningJob(NamedTuple):
    folder: str
    sources: tuple[SourceSegment, ...]
    """In ascending order, from the log's start to `end`."""
    first_dirty: int
    end: int
    """The base offset of the first segment that is not cleaned."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int
    max_index_entries: int
    producers: dict[int, LastOfProducer]
    aborted: tuple[AbortedTransaction, ...]
    levels: dict[int, int]
    """Compression levels by codec, where the topic sets one."""
    map_bytes: int
    io_bytes: int
    bytes_per_second: float

    def ends(self) -> list[tuple[SourceSegment, int]]:
        """Every segment, with the offset at which the next one begins."""
        ends = [*(source.base_offset for source in self.sources[1:]), self.end]
        return list(zip(self.sources, ends, strict=False))


class CleanedGroup(NamedTuple):
    """A segment that is written, synced, and waits under its temporary name."""

    place: int
    """Of the first segment that it takes the place of, in the job."""
    segments: int
    """How many it takes the place of."""
    base_offset: int
    size: int
    changed: bool
    """False: it says what its one source says, and need not take its place."""
    read_bytes: int
    written_bytes: int
    read_records: int
    kept_records: int
    left_as_they_are: tuple[int, ...]
    """First offsets of batches whose records cannot be read."""


class PassEnd(NamedTuple):
    """After the last group."""

    clean_until: int
    mapped_keys: int
    map_utilisation: float


def job_to_json(job: CleaningJob) -> str:
    return json.dumps(job, separators=(",", ":"))


def job_from_json(text: str) -> CleaningJob:
    raw = CleaningJob(*json.loads(text))
    return raw._replace(
        sources=tuple(SourceSegment(*source) for source in raw.sources),
        producers={int(producer): LastOfProducer(*last) for producer, last in raw.producers.items()},
        aborted=tuple(AbortedTransaction(*entry) for entry in raw.aborted),
        levels={int(codec): level for codec, level in raw.levels.items()},
    )


def step_to_json(step: CleanedGroup | PassEnd) -> str:
    return json.dumps([type(step).__name__, *step], separators=(",", ":"))


def step_from_json(text: str) -> CleanedGroup | PassEnd:
    name, *fields = json.loads(text)
    if name == PassEnd.__name__:
        return PassEnd(*fields)
    group = CleanedGroup(*fields)
    return group._replace(left_as_they_are=tuple(group.left_as_they_are))
