"""The connectors of directories without Spark and without a broker: their loops, over a log that keeps
records and positions together and lets only the newest worker decide, as decisions do."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from headrace.connect.api import Config, ConnectorFailure, Position, Record, Rejected
from headrace.connect.files.places import Place, configured_place
from headrace.connect.plugins import all_settings
from headrace.connect.position import NOWHERE, position_of
from headrace.core.ids import TopicPartition
from headrace.spark.connect.connectors.directory_sink import DirectorySink
from headrace.spark.connect.connectors.directory_source import DirectorySource
from headrace.spark.connect.storing import ByDecision
from headrace.spark.sink.job import Noted, Settled

Dies = Callable[[str], None]
"""Asked at each moment at which a worker can be killed; raises Died."""


class Died(Exception):
    """The worker is gone."""


def lives(moment: str) -> None:
    pass


def config_of(connector: type[DirectorySink | DirectorySource], settings: Mapping[str, str]) -> Config:
    given = {"name": "files", "connector.class": "x", "topics": "t", "topic": "t", **settings}
    return Config("files", all_settings(connector).parse(given), given)


def place_at(settings: Mapping[str, str]) -> Place:
    return configured_place(config_of(DirectorySource, {"format": "json", **settings}))


def put_file(place: Place, path: str, content: bytes) -> None:
    with place.open_for_writing(path) as file:
        file.write(content)


class Reading:
    """The source, worker after worker."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = {"file.quiet.ms": "0", **settings}
        self.topic: list[Record] = []
        self.position: Position = NOWHERE
        self._source: DirectorySource | None = None

    def step(self, dies: Dies = lives) -> bool:
        if self._source is None:
            self._source = DirectorySource(config_of(DirectorySource, self.settings))
            if self.position:
                self._source.committed(self.position)
        step = self._source.plan(self.position)
        dies("planned")
        if step is None:
            return False
        records = []
        for part in step.parts:
            task = DirectorySource(config_of(DirectorySource, self.settings))
            for record in task.read(pickle.loads(pickle.dumps(part))):
                records.append(record)
                dies("reading")
            task.stop()
        dies("read")
        self.topic += records
        self.position = position_of(step.position.text())
        dies("decided")
        self._source.committed(self.position)
        dies("told")
        return True

    def drain(self, dies: Dies = lives) -> list[Any]:
        while True:
            try:
                if not self.step(dies):
                    return [each.value for each in self.topic]
            except Died:
                self.restart()

    def restart(self) -> None:
        if self._source is not None:
            self._source.stop()
            self._source = None


class Decisions:
    """What is in the log, and whose turn it is. See `headrace.spark.sink.job.Jobs`."""

    def __init__(self) -> None:
        self.notes: list[str] = []


class MemoryJobs:
    def __init__(self, log: Decisions, dies: Dies = lives) -> None:
        self._log = log
        self._dies = dies
        self._known: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def settle(self) -> Settled:
        self._known = len(self._log.notes)
        note = self._log.notes[-1] if self._log.notes else None
        return Settled(None if note is None else Noted("", note, self._known, None, 0), 0)

    def run(self, frame: None, job_id: str, note: str) -> None:
        self._dies("deciding")
        if self._known != len(self._log.notes):
            raise ConnectorFailure("another driver has decided")
        self._log.notes.append(note)
        self._known += 1
        self._dies("decided")


class Frame:
    """As much of one as the sink asks for: each partition of a topic is a task."""

    def __init__(self, batches: Sequence[Any]) -> None:
        self._batches = batches

    def select(self, *names: str) -> Frame:
        return self

    def mapInArrow(self, work: Callable[[Iterable[Any]], Iterator[Any]], schema: str) -> Frame:
        return Frame([found for batch in self._batches for found in work(iter([batch]))])

    def collect(self) -> list[dict[str, Any]]:
        return [row for batch in self._batches for row in batch.to_pylist()]


class MemoryBatch:
    def __init__(self, records: Sequence[dict[str, Any]], ends: Mapping[TopicPartition, int]) -> None:
        by_partition: dict[TopicPartition, list[dict[str, Any]]] = {}
        for each in records:
            by_partition.setdefault(TopicPartition(each["topic"], each["partition"]), []).append(each)
        self.frame = Frame([arrow(found) for found in by_partition.values()])
        self.ends = ends
        self.rejected: list[Rejected] = []

    def reject(self, rejected: Iterable[Rejected]) -> None:
        self.rejected += rejected


def arrow(records: Sequence[dict[str, Any]]) -> Any:
    schema = pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("key", pa.binary()),
            ("value", pa.binary()),
        ]
    )
    return pa.RecordBatch.from_pylist(list(records), schema)


class DyingPlace(Place):
    """Asks before each thing that it does."""

    dies: Dies = staticmethod(lives)

    def open_for_writing(self, path: str) -> Any:
        self.dies("opening")
        return super().open_for_writing(path)

    def keep(self, paths: Sequence[str]) -> None:
        self.dies("keeping")
        super().keep(paths)

    def move(self, path: str, to: str) -> None:
        self.dies("moving")
        super().move(path, to)

    def clear(self, below: str) -> None:
        self.dies("clearing")
        super().clear(below)

    def delete(self, path: str) -> None:
        self.dies("deleting")
        super().delete(path)


class Worker:
    """One worker with the sink, over a log of records."""

    def __init__(
        self,
        settings: Mapping[str, str],
        log: Decisions,
        records: Sequence[dict[str, Any]],
        dies: Dies = lives,
    ) -> None:
        self.sink = DirectorySink(config_of(DirectorySink, settings))
        place = configured_place(self.sink.config)
        place.__class__ = DyingPlace
        place.dies = dies  # type: ignore[attr-defined]  # a DyingPlace by now
        self.sink._kept_place = place
        self._records = records
        self._dies = dies
        jobs: Any = MemoryJobs(log, dies)  # as much of Jobs as is asked for
        self.storing = ByDecision(self.sink, jobs)
        self.rejected: list[Rejected] = []

    def begin(self) -> None:
        self.storing.begin()

    def batch(self, most: int) -> Any:
        """What comes next, at most so many of each partition, as a batch; None if nothing does."""
        known = self.storing.known()
        taken, ends = [], dict(known)
        for each in self._records:
            partition = TopicPartition(each["topic"], each["partition"])
            first = known.get(partition, 0)
            if first <= each["offset"] < first + most:
                taken.append(each)
                ends[partition] = each["offset"] + 1
        return MemoryBatch(taken, ends) if taken else None

    def step(self, most: int) -> bool:
        batch = self.batch(most)
        if batch is None:
            return False
        self.storing.store(batch, lambda work: work())
        self.rejected += batch.rejected
        return True


def lines_of(place: Place) -> list[dict[str, Any]]:
    """What readers of a directory with lines of JSON see."""
    found = []
    for each in sorted(place.files(), key=lambda file: file.path):
        with place.reading(each.path) as file:
            found += [json.loads(line) for line in file.read().splitlines()]
    return found
