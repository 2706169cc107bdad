"""The history of a topic into the lake's table, past the brokers.

    from headrace.spark.lake.backfill import job
    from headrace.spark.segments.place import Directories

    job.run(spark, config, "orders", Directories(("/data/headrace",)))

Step after step: tasks read segments and write Parquet files where nobody looks, the step is written down, and
one commit adds the files to the table. The table knows which step it has, so a step that was cut off anywhere
is there once. When all is there, the offsets are left where `lake run` finds them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from headrace.arrow.columns import FIRST, Bounds
from headrace.arrow.errors import HistoryGone
from headrace.spark import columns
from headrace.spark.lake import broker, locks, shaping
from headrace.spark.lake.backfill import refusals
from headrace.spark.lake.backfill.notes import Notes, Step
from headrace.spark.lake.backfill.plan import Offsets, begins_of, ends_of, size_of, steps_of, task_bytes
from headrace.spark.lake.backfill.running import Stopped, outcomes
from headrace.spark.lake.backfill.task import Outcome, Work
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig, Maintenance
from headrace.spark.lake.files import files_for
from headrace.spark.lake.identity import note_topic
from headrace.spark.lake.loader import prepare
from headrace.spark.lake.plan import PlanRefused, Route, route
from headrace.spark.lake.tables.landing import Landing
from headrace.spark.lake.tables.matching import within
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.table import Commit, Table
from headrace.spark.segments.job import list_spans
from headrace.spark.segments.place import Bucket, Place
from headrace.spark.segments.plan import Span, Task, tasks

_CONNECTOR: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
_log = logging.getLogger(__name__)


@dataclass
class Backfilled:
    """What a run has done so far, and at its end the whole."""

    topic: str
    table: str
    total_bytes: int = 0
    """Of segments that this run has to read."""
    read_bytes: int = 0
    rows: int = 0
    files: int = 0
    written_bytes: int = 0
    steps: int = 0
    seconds: float = 0.0
    ends: Offsets = field(default_factory=dict)
    """Where the lake goes on, by partition. One that is not there is loaded from its beginning."""
    complete: bool = False


Told = Callable[[Backfilled], None]


class Backfill:
    """One topic's. `run` may be cut off anywhere, and repeated."""

    def __init__(self, spark: SparkSession, config: LakeConfig, way: Route) -> None:
        self.spark = spark
        self.config = config
        self.route = way
        self.cores = spark.sparkContext.defaultParallelism
        self.files = files_for(config.state, spark)
        self.notes = Notes(self.files, way)
        self.table: Table = open_table(spark, config, way.table)
        self.done = Backfilled(way.topic, way.table)

    def run(self, place: Place, stopping: threading.Event, told: Told = lambda _: None) -> Backfilled:
        """With `stopping` set it ends between two commits, and is not `complete`."""
        began = time.monotonic()
        with locks.held(self.route.state, "backfill", self.spark):
            try:
                if not self._lake_goes_on():
                    refusals.check_format(self.route)
                    self._carry_on(place, stopping, told)
            except Stopped:
                pass
            finally:
                self.done.seconds = time.monotonic() - began
        return self.done

    def leave_rest(self) -> Backfilled:
        """The lake is to go on behind the last step that the table has."""
        with locks.held(self.route.state, "backfill", self.spark):
            if not self._lake_goes_on():
                writer = self.notes.writer()
                if writer is None:
                    raise refusals.not_begun(self.route)
                last = self._last_committed(writer)
                self._finish({} if last is None else last.ends)
        return self.done

    def _carry_on(self, place: Place, stopping: threading.Event, told: Told) -> None:
        writer = self._begun(place)
        last = self._last_committed(writer)
        number = 0 if last is None else last.number + 1
        self.done.ends = {} if last is None else dict(last.ends)
        spans = self._spans(place)
        self.done.total_bytes = sum(span.size for span in spans)
        planned = tasks(spans, task_bytes(self.done.total_bytes, self.cores))
        if planned:
            self.notes.reopen()
            names = self._prepared()
            for step in steps_of(planned, self.cores):
                self._take(place, step, names, Commit(writer, number), stopping, told)
                number += 1
        self._finish(self.done.ends)

    def _finish(self, ends: Offsets) -> None:
        self.done.ends = dict(ends)
        self.notes.complete(ends)
        self.done.complete = True

    # --- before the first step ----------------------------------------------------------------------------

    def _lake_goes_on(self) -> bool:
        """Then everything was done before, or nothing may be done."""
        if Checkpoint(self.files, self.route.checkpoint).query_id() is None:
            return False
        ends = self.notes.ends()
        if ends is None:
            raise refusals.lake_has_begun(self.route)
        self.done.ends = ends
        self.done.complete = True
        return True

    def _begun(self, place: Place) -> str:
        """By which name the table knows this backfill, from its first start on."""
        if self.table.schema() is None:
            self.notes.forget()
        elif self.notes.writer() is None and self._has_rows():
            raise refusals.table_has_rows(self.route, self.table.name)
        note_topic(self.files, self.route, place.topic_id if isinstance(place, Bucket) else None)
        return self.notes.begin()

    def _has_rows(self) -> bool:
        """Of this topic: others may have the same table."""
        return not self.table.read().filter(sf.col(columns.TOPIC) == self.route.topic).isEmpty()

    def _last_committed(self, writer: str) -> Step | None:
        """Of the steps that were written down. The last one may have got no further."""
        if self.table.schema() is None:
            return None
        self.table.recover(writer)
        last = self.notes.last()
        if last is None or self._is_committed(last, writer):
            return last
        return self.notes.step(last.number - 1)

    def _is_committed(self, step: Step, writer: str) -> bool:
        """By the table's own record of commits, or, where somebody has expired that, by the rows."""
        return not step.rows or self.table.last(writer) >= step.number or self._has_rows_of(step)

    def _has_rows_of(self, step: Step) -> bool:
        return not self.table.read().filter(within(step.ranges(self.route.topic))).isEmpty()

    def _spans(self, place: Place) -> list[Span]:
        with place.opened(patient=False) as opened:
            histories = opened.histories(self.route.topic, None)
            begins = {} if isinstance(place, Bucket) else self._begins()
            for history in histories:
                partition = history.partition.partition
                if partition not in self.done.ends and begins.get(partition, history.start) < history.start:
                    raise refusals.not_whole(history, begins[partition])
                first = self.done.ends.get(partition, history.start)
                if first < history.start:
                    if self.config.on_data_loss == "stop":
                        raise refusals.records_gone(history, first)
                    self.done.ends[partition] = history.start
            try:
                return list_spans(
                    opened,
                    self.route.topic,
                    None,
                    lambda partition: Bounds(first_offset=self.done.ends.get(partition, FIRST)),
                    committed_only=self._committed_only,
                )
            except HistoryGone as gone:
                if isinstance(place, Bucket):
                    raise
                raise refusals.begins_elsewhere(gone) from None

    def _begins(self) -> dict[int, int]:
        """Where the brokers' log of each partition begins. A disk may have less than that."""
        try:
            return broker.begins(self.spark, self.config.kafka, self.route.topic)
        except broker.BrokersUnreachable as error:
            _log.warning("whether the directories have all of %s is not known: %s", self.route.topic, error)
            return {}

    @property
    def _committed_only(self) -> bool:
        return self.config.kafka.get("isolation.level", "read_committed") == "read_committed"

    def _prepared(self) -> tuple[str, ...]:
        """The table as the lake makes it; which of its columns the files have."""
        empty = self.spark.createDataFrame([], _CONNECTOR)
        shaped = shaping.shape(empty, self.route)
        following = prepare(self.table, shaped)
        refusals.check_columns(self.table.name, shaped.incoming, following)
        return tuple(shaped.incoming.names)

    # --- one step -----------------------------------------------------------------------------------------

    def _take(
        self,
        place: Place,
        step: Sequence[Task],
        names: tuple[str, ...],
        commit: Commit,
        stopping: threading.Event,
        told: Told,
    ) -> None:
        landing = self.table.landing(commit)
        refusals.check_landing(landing)
        settings = self.config.maintenance or Maintenance()
        work = Work(place, landing, names, self._committed_only, settings.target_file_bytes)
        before, sizes = self.done.read_bytes, [size_of(task) for task in step]

        def tell(ended: int) -> None:
            self.done.read_bytes = max(self.done.read_bytes, before + sum(sizes[:ended]))
            told(self.done)

        found = self.read(work, step, stopping, tell)
        failed = next((each.error for each in found if each.error is not None), None)
        if failed is not None:
            raise refusals.BackfillFailed(failed)
        rows = sum(each.rows for each in found)
        ends = ends_of(step, self.done.ends)
        self.write_down(Step(commit.batch, begins_of(step), ends, rows))
        if rows:
            self.commit(landing, found, commit)
        self.done.ends = ends
        self.done.steps += 1
        self.done.rows += rows
        self.done.files += sum(len(each.files) for each in found)
        self.done.written_bytes += sum(file.size for each in found for file in each.files)
        told(self.done)

    # Each of these is a place where a test can cut it off.

    def read(
        self, work: Work, step: Sequence[Task], stopping: threading.Event, told: Callable[[int], None]
    ) -> list[Outcome]:
        return outcomes(self.spark, f"backfill of {self.route.topic}", work, step, stopping, told)

    def write_down(self, step: Step) -> None:
        self.notes.write(step)

    def commit(self, landing: Landing, found: Sequence[Outcome], commit: Commit) -> None:
        self.table.add(landing, [file for each in found for file in each.files], commit)


def of_topic(spark: SparkSession, config: LakeConfig, topic: str) -> Backfill:
    way = route(config, topic)
    if way is None:
        raise PlanRefused(f"the configuration has no rule for topic {topic}; add it below [[topics]]")
    return Backfill(spark, config, way)


def run(
    spark: SparkSession,
    config: LakeConfig,
    topic: str,
    place: Place,
    *,
    stop: threading.Event | None = None,
    told: Told = lambda _: None,
) -> Backfilled:
    """Load what the history has and the table has not."""
    return of_topic(spark, config, topic).run(place, stop or threading.Event(), told)
