"""What was done, batch by batch, kept beside the checkpoint of each topic for whoever asks later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryProgress

from headrace.spark.lake.checkpoint import Checkpoint, offsets_of
from headrace.spark.lake.files import Files

_KEPT: Final = 20


@dataclass(frozen=True)
class Batch:
    """Records are counted by offsets: markers of transactions and compacted records count as well.

    Rows and dead letters are what the batch wrote; unknown (None) of one that another process wrote.
    """

    number: int
    records: int
    began_ms: int
    duration_ms: int
    rows: int | None = None
    dead_letters: int | None = None

    @property
    def ended_ms(self) -> int:
        return self.began_ms + self.duration_ms


@dataclass
class New:
    """Of all batches of one run, also of those that are not kept."""

    batches: int = 0
    records: int = 0
    rows: int = 0
    dead_letters: int = 0
    commonest_reason: str | None = None
    """Why most dead letters of the topic are some. Looked up at the end of a run that has new ones."""

    def add(self, batch: Batch) -> None:
        self.batches += 1
        self.records += batch.records
        self.rows += batch.rows or 0
        self.dead_letters += batch.dead_letters or 0


@dataclass
class Done:
    """The last batches of a topic, and the last error, if it has stopped."""

    topic: str
    table: str
    batches: list[Batch] = field(default_factory=list)
    error: str | None = None
    new: New = field(default_factory=New, compare=False)
    """What this run has done so far. Not kept: the next run has its own."""

    def add(self, batch: Batch) -> bool:
        """Whether it is news. A batch without records is none."""
        if not batch.records or (self.batches and self.batches[-1].number >= batch.number):
            return False
        self.batches = [*self.batches, batch][-_KEPT:]
        self.new.add(batch)
        return True

    def rate(self) -> float | None:
        """Records a second while batches ran, over those that are kept."""
        milliseconds = sum(batch.duration_ms for batch in self.batches)
        return (
            None if not milliseconds else sum(batch.records for batch in self.batches) * 1000 / milliseconds
        )


def file_of(state: str) -> str:
    return f"{state}/batches.json"


def store(files: Files, state: str, done: Done) -> None:
    kept = asdict(done)
    del kept["new"]
    files.replace(file_of(state), json.dumps(kept))


def fetch(files: Files, state: str) -> Done | None:
    text = files.read(file_of(state))
    if text is None:
        return None
    document: dict[str, Any] = json.loads(text)
    document["batches"] = [Batch(**each) for each in document["batches"]]
    return Done(**document)


class Written(NamedTuple):
    """What a batch put into its tables."""

    rows: int
    dead_letters: int


def batch_of(
    progress: StreamingQueryProgress, checkpoint: Checkpoint, written: Written | None = None
) -> Batch:
    """From Spark's progress of a query with one source. It does not say where the first batch begins."""
    told = json.loads(progress.json)
    source = told["sources"][0]
    first = offsets_of(source["startOffset"] or {}) or checkpoint.first_offsets()
    end = offsets_of(source["endOffset"] or {})
    records = sum(offset - first.get(partition, 0) for partition, offset in end.items())
    began = datetime.fromisoformat(told["timestamp"].replace("Z", "+00:00"))
    return Batch(
        told["batchId"],
        records,
        int(began.timestamp() * 1000),
        told["durationMs"].get("triggerExecution", 0),
        *(written or ()),
    )


def records_ahead(progress: StreamingQueryProgress) -> int:
    """How many the brokers had when the batch was planned, and it did not take."""
    source = json.loads(progress.json)["sources"][0]
    latest, end = offsets_of(source.get("latestOffset") or {}), offsets_of(source["endOffset"] or {})
    return max(0, sum(latest.values()) - sum(end.values()))
