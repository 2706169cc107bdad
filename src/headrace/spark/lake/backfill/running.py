"""Tasks of a step on Spark, with a look at how far they are."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from headrace.spark.lake.backfill.task import Outcome, Work, of_json
from headrace.spark.segments.plan import Task

_LOOK_SECONDS: Final = 0.5
_SCHEMA: Final = "task int, outcome string"


class Stopped(Exception):
    """Whoever runs it was asked to end."""


def outcomes(
    spark: SparkSession,
    name: str,
    work: Work,
    tasks: Sequence[Task],
    stopping: threading.Event,
    told: Callable[[int], None],
) -> list[Outcome]:
    """In the order of the tasks. `told` hears how many have ended. Stopped if `stopping` is set before all
    have."""
    context = spark.sparkContext
    group = f"backfill-{uuid.uuid4().hex}"
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        context.setJobGroup(group, name)
        try:
            numbers = spark.range(0, len(tasks), 1, len(tasks))
            found.extend(numbers.mapInArrow(_in_task(work, list(tasks)), _SCHEMA).collect())
        except BaseException as error:  # whoever waits gets it
            failed.append(error)

    thread = InheritableThread(target=run, name="backfill")
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
        if stopping.is_set():
            context.cancelJobGroup(group)
            thread.join()
            raise Stopped
        told(_ended(context, group))
    if failed:
        raise failed[0]
    told(len(tasks))
    return [of_json(row.outcome) for row in sorted(found, key=lambda row: row.task)]


def _in_task(work: Work, tasks: list[Task]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from headrace.spark.lake.backfill.task import carried_out, to_json

        for batch in batches:
            for number in batch.column(0).to_pylist():
                told = to_json(carried_out(work, tasks[number]))
                columns = [pa.array([number], pa.int32()), pa.array([told], pa.string())]
                yield pa.RecordBatch.from_arrays(columns, ["task", "outcome"])

    return run


def _ended(context: Any, group: str) -> int:
    tracker = context.statusTracker()
    ended = 0
    for job in tracker.getJobIdsForGroup(group):
        known = tracker.getJobInfo(job)
        for stage in known.stageIds if known is not None else ():
            info = tracker.getStageInfo(stage)
            ended += info.numCompletedTasks if info is not None else 0
    return ended
