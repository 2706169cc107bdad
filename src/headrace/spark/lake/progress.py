"""How far a running load is, also within a batch."""

from __future__ import annotations

from typing import NamedTuple

from headrace.spark.lake.batches import records_ahead
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.job import Lake, Loading


class TopicProgress(NamedTuple):
    topic: str
    loaded: int
    """By this run, by offsets; of the running batch as many as its tasks that ended. It never falls."""
    total: int | None
    rate: float | None
    state: str


def progress(lake: Lake, *, within_batch: bool = True) -> list[TopicProgress]:
    """Within a batch only where one job does it all: of several, the next one would begin at 0 again."""
    return [_of(lake, topic, within_batch) for topic in lake.loading.values()]


def _of(lake: Lake, topic: Loading, within_batch: bool) -> TopicProgress:
    done = topic.done
    before = loaded = done.new.records
    total: int | None = None
    state = "waiting"
    if topic.finished:
        state, total = "failed" if done.error else "done", loaded
    elif done.error is not None:
        state = f"trying again: {done.error.partition('.')[0][:60]}"
    elif topic.query is not None:
        state = "loading" if topic.query.status["isTriggerActive"] else "up to date"
        fraction = _task_fraction(lake, str(topic.query.runId)) if within_batch else None
        if fraction is not None:
            batch = _running_records(lake, topic)
            loaded, total = loaded + int(batch * fraction), loaded + batch
        last = topic.query.lastProgress
        if last is not None:
            total = max(total or 0, before + records_ahead(last))
    # Each job of a batch begins with no task done.
    topic.shown = loaded = max(loaded, topic.shown)
    return TopicProgress(topic.route.topic, loaded, total, done.rate(), state)


def _running_records(lake: Lake, topic: Loading) -> int:
    """Of the batch whose offsets are fixed and which is not committed."""
    checkpoint = Checkpoint(lake.files, topic.route.checkpoint)
    planned = checkpoint.planned()
    if planned is None or planned == checkpoint.committed():
        return 0
    return sum(each.end - each.first for each in checkpoint.ranges(planned) or [])


def _task_fraction(lake: Lake, group: str) -> float | None:
    """Spark runs the jobs of a query in a group that is named like its run. None while it runs no job."""
    tracker = lake.spark.sparkContext.statusTracker()
    ended = tasks = 0
    for job in tracker.getJobIdsForGroup(group)[:1]:  # the newest comes first
        found = tracker.getJobInfo(job)
        for stage in found.stageIds if found is not None and found.status == "RUNNING" else ():
            info = tracker.getStageInfo(stage)
            if info is not None:
                ended, tasks = ended + info.numCompletedTasks, tasks + info.numTasks
    return ended / tasks if tasks else None
