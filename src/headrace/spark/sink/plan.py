"""What travels between the driver and its tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.datasource import WriterCommitMessage

from headrace.client.transaction_ends import Patience
from headrace.spark.sink.decision import Run, Written
from headrace.spark.sink.options import Options


class Plan(NamedTuple):
    """From the driver to each task of a batch."""

    options: Options
    sink: str
    run: Run
    patience: Patience
    job: str
    """A name for this one job, used where Spark tells no query and no run."""

    @property
    def checksums(self) -> bool:
        wanted = self.options.checksum
        return not self.patience.for_ever if wanted is None else wanted


class Placed(NamedTuple):
    """What one task put into one partition of the target, from the first record to the last."""

    topic: str
    partition: int
    rows: int
    first_source: int
    last_source: int
    first_target: int
    last_target: int


@dataclass(frozen=True)
class TaskDone(WriterCommitMessage):
    """From a task to the driver."""

    sink: str
    run: Run
    run_name: str
    """The part of its transactional id that all tasks of this run of the query share."""
    query: str
    written: Written | None
    """None if the task had no rows."""
    bytes: int = 0
    placed: tuple[Placed, ...] = ()
    """Where its rows landed, if they came with the offsets they have at the source."""
