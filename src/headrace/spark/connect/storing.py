"""How a sink's batch and the place behind it become one: by the target itself, or by a decision in the
log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self
from uuid import uuid4

from headrace.connect.api import Batch, GiveUp, Json, Sink, StagedSink
from headrace.core.ids import TopicPartition
from headrace.spark.sink.job import Jobs

Ends = Mapping[TopicPartition, int]
Job = Callable[[Callable[[], Any]], Any]
"""Runs something in its turn among the worker's Spark jobs."""


class Storing(Protocol):
    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self) -> None:
        """Before the first batch: what another worker has left undone."""

    def known(self) -> Ends:
        """Where to go on; of other partitions the group knows it."""

    def store(self, batch: Batch, job: Job) -> None:
        """When it returns, the batch is there."""


class ByTarget:
    """The sink writes, and its target says where it is, or nobody does."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def begin(self) -> None:
        pass

    def known(self) -> Ends:
        return self._sink.position() or {}

    def store(self, batch: Batch, job: Job) -> None:
        job(lambda: self._sink.write(batch))


class ByDecision:
    """What is staged and where it ends are the note of a decision; then it is published. Each decision is
    published before the next one is made, by who made it or by who found it."""

    def __init__(self, sink: StagedSink, jobs: Jobs) -> None:
        self._sink = sink
        self._jobs = jobs
        self._ends: dict[TopicPartition, int] = {}

    def __enter__(self) -> Self:
        self._jobs.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jobs.__exit__(kind, error, trace)

    def begin(self) -> None:
        note = note_of(self._jobs.settle().note)
        if note.staged is not None:
            self._sink.publish(note.staged)
        self._ends = dict(note.ends)

    def known(self) -> Ends:
        return self._ends

    def store(self, batch: Batch, job: Job) -> None:
        staged = job(lambda: self._sink.stage(batch))
        self._ends |= batch.ends
        self._jobs.run(None, uuid4().hex, StagedNote(self._ends, staged).text())
        self._sink.publish(staged)


class StagedNote(NamedTuple):
    """Of a decision."""

    ends: Ends
    staged: Json | None
    """What is to be published, if it is not yet."""

    def text(self) -> str:
        topics: dict[str, dict[str, int]] = {}
        for partition, end in sorted(self.ends.items()):
            topics.setdefault(partition.topic, {})[str(partition.partition)] = end
        return json.dumps({"ends": topics, "staged": self.staged}, separators=(",", ":"))

    def altered(self, ends: Mapping[TopicPartition, int | None]) -> StagedNote:
        """What is staged stays: the worker may have died before it was published."""
        merged = {**self.ends, **ends}
        return StagedNote({each: end for each, end in merged.items() if end is not None}, self.staged)


def note_of(text: str | None) -> StagedNote:
    if text is None:
        return StagedNote({}, None)
    try:
        document = json.loads(text)
        ends = {
            TopicPartition(topic, int(partition)): int(end)
            for topic, partitions in document["ends"].items()
            for partition, end in partitions.items()
        }
        return StagedNote(ends, document["staged"])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise GiveUp(
            "the last decision of this connector is none of a sink that stages its batches: make the "
            "connector under another name"
        ) from None
