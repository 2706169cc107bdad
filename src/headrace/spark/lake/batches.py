"""What was done, batch by batch, kept beside the checkpoint of each topic for whoever asks later."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryProgress

from headrace.spark.lake.checkpoint import Checkpoint, offsets_of
from headrace.spark.lake.files import Files

_KEPT: Final = 20


@dataclass(frozen=True)
class Batch:
    """Records are counted by offsets: markers of transactions and compacted records count as well."""

    number: int
    records: int
    began_ms: int
    duration_ms: int

    @property
    def ended_ms(self) -> int:
        return self.began_ms + self.duration_ms


@dataclass
class Done:
    """The last batches of a topic, and the last error, if it has stopped."""

    topic: str
    table: str
    batches: list[Batch] = field(default_factory=list)
    error: str | None = None

    def add(self, batch: Batch) -> bool:
        """Whether it is news. A batch without records is none."""
        if not batch.records or (self.batches and self.batches[-1].number >= batch.number):
            return False
        self.batches = [*self.batches, batch][-_KEPT:]
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
    files.replace(file_of(state), json.dumps(asdict(done)))


def fetch(files: Files, state: str) -> Done | None:
    text = files.read(file_of(state))
    if text is None:
        return None
    document: dict[str, Any] = json.loads(text)
    document["batches"] = [Batch(**each) for each in document["batches"]]
    return Done(**document)


def batch_of(progress: StreamingQueryProgress, checkpoint: Checkpoint) -> Batch:
    """From Spark's progress of a query with one source. It does not say where the first batch begins."""
    told = json.loads(progress.json)
    source = told["sources"][0]
    first = offsets_of(source["startOffset"] or {}) or checkpoint.first_offsets()
    end = offsets_of(source["endOffset"] or {})
    records = sum(offset - first.get(partition, 0) for partition, offset in end.items())
    began = datetime.fromisoformat(told["timestamp"].replace("Z", "+00:00"))
    return Batch(
        told["batchId"], records, int(began.timestamp() * 1000), told["durationMs"].get("triggerExecution", 0)
    )


def records_ahead(progress: StreamingQueryProgress) -> int:
    """How many the brokers had when the batch was planned, and it did not take."""
    source = json.loads(progress.json)["sources"][0]
    latest, end = offsets_of(source.get("latestOffset") or {}), offsets_of(source["endOffset"] or {})
    return max(0, sum(latest.values()) - sum(end.values()))
