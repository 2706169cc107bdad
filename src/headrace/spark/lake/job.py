"""Topics into tables: one streaming query for each topic, started as topics appear.

    from headrace.spark.lake import config, job
    job.run(spark, config.load(Path("lake.toml")), once=True)

A query for each topic means that each has its own checkpoint and its own pace: a topic that is added begins,
a topic that fails is tried again, and the others do not notice. A table's commit and Spark's are not one
step; loader.py has what makes the repetition of a batch harmless.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace.core.errors import HeadraceError
from headrace.spark.jvm import require_kafka
from headrace.spark.lake import batches, broker, locks, maintenance
from headrace.spark.lake.batch_errors import told_to_spark
from headrace.spark.lake.batches import Done, Written
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.dead_letters import reasons
from headrace.spark.lake.failures import explain, short
from headrace.spark.lake.files import files_for
from headrace.spark.lake.group_progress import GroupProgress
from headrace.spark.lake.identity import noted_id, same_topic
from headrace.spark.lake.loader import TopicLoader
from headrace.spark.lake.plan import PlanRefused, Route, missing, reader_options, routes
from headrace.spark.lake.resume import starting_offsets
from headrace.spark.lake.tables.opening import open_table

_LOOK_SECONDS: Final = 0.5
#: A load of seconds should not wait half a second for its end to be seen.
_LOOK_OFTEN_SECONDS: Final = 0.05
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_GRACE_SECONDS: Final = 30.0
_log = logging.getLogger(__name__)
_ENDED: Final = "the query ended in the middle without saying why; Spark's log may have the reason"


class LoadFailed(HeadraceError):
    """A load that did not get everything; the other topics are loaded."""


@dataclass
class Loading:
    """A topic that is being loaded, or waits to be tried again."""

    route: Route
    done: Done
    query: StreamingQuery | None = None
    topic_id: str | None = None
    is_told: bool = False
    """Its consumer group has heard how far it was when it began."""
    failures: int = 0
    try_at: float = 0.0
    look_at: float = 0.0
    finished: bool = False
    written: dict[int, Written] = field(default_factory=dict)
    """Of batches that Spark has not told of yet; their loader fills it."""
    shown: int = 0
    """The most that was told to be loaded: a batch's next job begins with no task done."""


@dataclass
class Lake:
    """What is running. `look` may be called as often as one likes; all decisions are made there."""

    spark: SparkSession
    config: LakeConfig
    once: bool = False
    loading: dict[str, Loading] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    stopping: bool = False

    def __post_init__(self) -> None:
        self.files = files_for(self.config.state, self.spark)
        self.topic_ids = broker.TopicIds(self.spark, self.config.kafka)
        self._discover_at = 0.0
        group = self.config.group
        self._progress = None if group is None else GroupProgress(self.spark, self.config.kafka, group)

    def discover(self) -> None:
        """Topics that have appeared. New partitions of a topic are found by its query."""
        there = self.topic_ids.names()
        self.absent = missing(self.config, there)
        for route in routes(self.config, there):
            if route.topic not in self.loading:
                self.loading[route.topic] = Loading(route, self.done_before(route))

    def done_before(self, route: Route) -> Done:
        """By the query that the checkpoint belongs to; a new one counts its batches from 0 again."""
        done = batches.fetch(self.files, route.state)
        if done is None or Checkpoint(self.files, route.checkpoint).planned() is None:
            return Done(route.topic, route.table)
        done.error = None
        return done

    def start(self, topic: Loading) -> None:
        route = topic.route
        check_topic = same_topic(self.files, route, lambda: self.topic_ids.of(route.topic))
        check_topic()
        checkpoint = Checkpoint(self.files, route.checkpoint)
        with ExitStack() as first:
            starting = None
            if checkpoint.planned() is None:
                # Before the query has its checkpoint, a backfill could begin beside it.
                first.enter_context(locks.held(route.state, "backfill"))
                starting = starting_offsets(self.spark, self.config, route)
            topic.query = self._query(topic, checkpoint, starting, check_topic)
        topic.topic_id = noted_id(self.files, route)

    def _query(
        self, topic: Loading, checkpoint: Checkpoint, starting: str | None, check_topic: Callable[[], None]
    ) -> StreamingQuery:
        route = topic.route
        reader = self.spark.readStream.format("kafka").options(
            **reader_options(self.config, route.topic, starting)
        )
        loader = TopicLoader(self.config, route, checkpoint, check_topic)
        topic.written = loader.written
        writer = (
            reader.load()
            .writeStream.queryName(f"lake {route.topic}")
            .option("checkpointLocation", route.checkpoint)
            .foreachBatch(told_to_spark(loader, lambda: self.stopping))
        )
        return self.begin(writer)

    def begin(self, writer: DataStreamWriter) -> StreamingQuery:
        if self.once:
            return writer.trigger(availableNow=True).start()
        milliseconds = int(self.config.trigger_seconds * 1000)
        return writer.trigger(processingTime=f"{milliseconds} milliseconds").start()

    def look(self) -> None:
        """Start what is due, note what was done, and see what has ended."""
        now = time.monotonic()
        if not self.loading or (not self.once and now >= self._discover_at):
            self._rediscover()
        for topic in self.loading.values():
            if topic.query is not None:
                self._note(topic, topic.query)
            elif not topic.finished and now >= topic.try_at and self._has_room() and not self._try(topic):
                break  # the others would wait for the same brokers, one after the other
        if self._progress is not None:
            self._progress.tell()

    def _rediscover(self) -> None:
        """Brokers that cannot be asked just now, and a new topic that has no place in the configuration, are
        no reasons to stop what runs."""
        try:
            self.discover()
        except (broker.BrokersUnreachable, PlanRefused) as error:
            if self.once or not self.loading:
                raise
            _log.warning("new topics are not looked for: %s", error)
        self._discover_at = time.monotonic() + self.config.discover_seconds

    def _has_room(self) -> bool:
        running = sum(topic.query is not None for topic in self.loading.values())
        return not self.once or running < self.config.parallel_topics

    def _try(self, topic: Loading) -> bool:
        """False where no other topic could be started either."""
        try:
            self.start(topic)
        except Exception as error:  # whatever it is, the other topics go on
            self._failed(topic, str(error) if isinstance(error, HeadraceError) else short(str(error)))
            return not isinstance(error, broker.BrokersUnreachable)
        return True

    def _note(self, topic: Loading, query: StreamingQuery, *, stopped: bool = False) -> None:
        running = query.isActive  # before the progress: what is told after the end is the whole
        if running and time.monotonic() < topic.look_at:
            return  # to ask a query for its progress costs more than to ask whether it runs
        topic.look_at = time.monotonic() + _LOOK_SECONDS
        news = False
        checkpoint = Checkpoint(self.files, topic.route.checkpoint)
        for progress in query.recentProgress:
            if not topic.done.batches or progress.batchId > topic.done.batches[-1].number:
                written = topic.written.pop(progress.batchId, None)
                news |= topic.done.add(batches.batch_of(progress, checkpoint, written))
        if news:
            topic.failures = 0
            topic.done.error = None
            batches.store(self.files, topic.route.state, topic.done)
        if self._progress is not None and (news or not topic.is_told):
            topic.is_told = True
            route = topic.route
            self._progress.loaded(route.table, route.topic, topic.topic_id, checkpoint.loaded())
        if not running:
            topic.query = None
            error = query.exception()
            if stopped:
                pass  # in the middle of a batch it may have an error of that, and is none the worse for it
            elif error is not None:
                self._failed(topic, self.explain(str(error), topic.route))
            elif not self.once or checkpoint.planned() != checkpoint.committed():
                self._failed(topic, _ENDED)  # whatever it was, it did not load what it had planned
            elif self.once:
                topic.finished = True

    def explain(self, text: str, route: Route) -> str:
        """What a query died of, for people."""
        return explain(text, route, self.config)

    def _failed(self, topic: Loading, reason: str) -> None:
        topic.failures += 1
        if topic.done.error != reason and not self.once:  # a load says it at its end
            _log.error("%s: %s", topic.route.topic, reason)
        topic.done.error = reason
        topic.finished = self.once
        topic.try_at = time.monotonic() + min(_FIRST_PAUSE * 2 ** (topic.failures - 1), _LONGEST_PAUSE)
        batches.store(self.files, topic.route.state, topic.done)

    def look_into_dead_letters(self) -> None:
        """At the end of a run: most people want to know why, and look no further."""
        for topic in self.loading.values():
            if topic.done.new.dead_letters:
                found = reasons(self.dead_letters_of(topic), topic.route.topic)
                topic.done.new.commonest_reason = next(iter(found), None)

    def dead_letters_of(self, topic: Loading) -> DataFrame:
        return open_table(self.spark, self.config, topic.route.dead_letters).read()

    @property
    def routes(self) -> list[Route]:
        return [topic.route for topic in self.loading.values()]

    @property
    def over(self) -> bool:
        return self.once and all(topic.finished for topic in self.loading.values())

    def wait(self, stopping: threading.Event) -> None:
        """Until it is time to look again."""
        running = [topic.query for topic in self.loading.values() if topic.query is not None]
        if not self.once:
            stopping.wait(_LOOK_SECONDS)
        elif len(running) == 1:
            self._await(running[0])
        else:
            stopping.wait(_LOOK_OFTEN_SECONDS)

    def _await(self, query: StreamingQuery) -> None:
        """A load of one topic is over in the moment in which its query is."""
        try:
            query.awaitTermination(_LOOK_OFTEN_SECONDS)  # type: ignore[arg-type]  # it takes parts of seconds
        except StreamingQueryException:
            pass  # whoever looks next sees it

    def stop(self) -> None:
        """Between two batches where that does not take long. In the middle of one nothing is lost either."""
        self.stopping = True
        deadline = time.monotonic() + _GRACE_SECONDS
        for topic in self.loading.values():
            if topic.query is None:
                continue
            while (
                topic.query.isActive and topic.query.status["isTriggerActive"] and time.monotonic() < deadline
            ):
                time.sleep(0.1)
            stopped = topic.query.isActive
            topic.query.stop()
            self._note(topic, topic.query, stopped=stopped)
        if self._progress is not None:
            self._progress.close()
        self.topic_ids.close()


def run(
    spark: SparkSession,
    config: LakeConfig,
    *,
    once: bool = False,
    stop: threading.Event | None = None,
    told: Callable[[Lake], None] = lambda _: None,
) -> list[Done]:
    """Load until `stop` is set, or with `once` what there is now. `told` is called again and again
    meanwhile.
    """
    require_kafka(spark, "the lake")
    stopping = threading.Event() if stop is None else stop
    with locks.held(config.state, "run", spark):
        lake = Lake(spark, config, once)
        upkeep = maintenance.Schedule(spark, config)
        try:
            attend(lake, stopping, told, lambda: None if once else upkeep.look(lake.routes))
        finally:
            upkeep.wait()
        if once and not stopping.is_set():
            upkeep.look(lake.routes)
            upkeep.wait()
    lake.look_into_dead_letters()
    if once:
        judge(lake)
    return [topic.done for topic in lake.loading.values()]


def attend(
    lake: Lake, stopping: threading.Event, told: Callable[[Any], None], between: Callable[[], None]
) -> None:
    """Look after the queries until they are over, or `stopping` is set; then end them."""
    told_at = 0.0
    try:
        while not stopping.is_set():
            lake.look()
            if lake.over:
                break
            if time.monotonic() >= told_at:
                told(lake)
                told_at = time.monotonic() + _LOOK_SECONDS
            between()
            lake.wait(stopping)
    finally:
        lake.stop()
    told(lake)


def judge(lake: Lake) -> None:
    failed: Sequence[Loading] = [topic for topic in lake.loading.values() if topic.done.error is not None]
    if failed:
        raise LoadFailed("\n".join(f"{topic.route.topic}: {topic.done.error}" for topic in failed))
    if lake.absent:
        raise LoadFailed(
            f"there is no topic {', '.join(lake.absent)}; create it, or take it out of the configuration"
        )
