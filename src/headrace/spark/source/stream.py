"""The control of one running query: asks the brokers, and lets plan.py and limits.py decide."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark.sql import SparkSession

from headrace.spark.kafka_client import is_gone
from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.lake.files import files_for
from headrace.spark.source import limits, plan
from headrace.spark.source.brokers import Brokers
from headrace.spark.source.commits import GroupCommits, ProgressListener
from headrace.spark.source.connector import offsets_in
from headrace.spark.source.filling import fill
from headrace.spark.source.options import Wish
from headrace.spark.source.sizes import Sampler

_FLUSH_SECONDS: Final = 15.0
_RUN: Final = "spark.jobGroup.id"
"""Where the thread of a query has the id of its run."""
_numbers = itertools.count(1)
_log = logging.getLogger(__name__)


class TopicStream:
    def __init__(self, spark: SparkSession, wish: Wish, connector: Any, where: str) -> None:
        self.name = f"headrace[{','.join(wish.topics)}]#{next(_numbers)}"
        #: How far the brokers were when they were asked last.
        self.latest: Offsets = {}
        self._spark = spark
        self._wish = wish
        self._connector = connector
        # Looked up once: each part of such a name is a question to Java.
        jvm: Any = spark._jvm
        self._reader = connector.kafkaOffsetReader()
        self._some = jvm.scala.Option.apply
        self._as_offset = jvm.org.apache.spark.sql.kafka010.KafkaSourceOffset
        self._files = files_for(where, spark)
        self._kept = f"{where}/topics.json"
        self._memory = plan.memory_of(self._files.read(self._kept))
        self._sampler = None if wish.max_bytes is None else Sampler(spark, wish)
        self._bounded = False
        self._target: Offsets | None = None
        """Where a query ends that reads what is there."""
        self._planned: Offsets | None = None
        self._repeats = True
        """Until this run has planned a batch itself, one that is read was planned by an earlier run."""
        self._repeated: tuple[Offsets, Offsets] | None = None
        self._waits = False
        self._batch_bytes: float | None = None
        self._density: float | None = None
        """Of the last batch whose size is known."""
        self._brokers = Brokers(spark, wish)
        self._commits = None if wish.group is None else GroupCommits(self._brokers, wish.group)
        if self._commits is not None:
            run = str(spark.sparkContext.getLocalProperty(_RUN))
            self._listener = ProgressListener(self.name, run, self._progressed, self._ended)
            spark.streams.addListener(self._listener)

    def begins(self) -> Offsets | None:
        # Before the connector asks for offsets: whatever is made anew behind this is noticed.
        self._remember(plan.Memory({**self._brokers.topic_ids(), **self._memory.ids}, self._memory.passage))
        return None

    def ends_with_what_is_there(self) -> None:
        self._bounded = True

    # --- where a batch ends

    def following(self, position: Offsets) -> Offsets:
        self._repeats = False
        self._is_done(position)
        latest = self._asked_latest(position)
        if latest is None:
            return position
        self.latest = latest
        if self._bounded and self._target is None:
            self._target = latest
        if latest == position and self._memory.passage is None:
            return position
        earliest = self._unless_gone(self._reader.fetchEarliestOffsets)
        if earliest is None:
            return position
        view = plan.View(latest, earliest, self._brokers.topic_ids())
        step = plan.step(self._memory, position, view, self._wish.on_loss)
        self._remember(step.memory)
        if step.passage_end is not None:
            return self._passed(step, latest)
        return self._limited(position, earliest, latest)

    def _asked_latest(self, position: Offsets) -> Offsets | None:
        """A new leader may not know yet how far it is. Where an end lies before the position, the connector
        asks again for some seconds.
        """
        known = self._connector.deserializeOffset(offsets_json(position)).partitionToOffsets()
        return self._unless_gone(lambda: self._reader.fetchLatestOffsets(self._some(known)))

    def _unless_gone(self, ask: Callable[[], Any]) -> Offsets | None:
        """None while a topic is not there, and that is to be waited for. It may go before any question."""
        try:
            found = ask()
        except Py4JJavaError as error:
            if not is_gone(error):
                raise
            missing = self._brokers.missing()
            if self._wish.on_loss == "fail":
                raise plan.RecordsLost(plan.gone(missing)) from None
            if not self._waits:
                _log.warning("%s: waiting for topic %s", self.name, ", ".join(sorted(missing)))
            self._waits = True
            return None
        self._waits = False
        return self._offsets(found)

    def _passed(self, step: plan.Step, latest: Offsets) -> Offsets:
        way, end = step.memory.passage, step.passage_end
        assert way is not None, "a passage that ends is remembered"
        assert end is not None, "only called for a passage"
        if self._sampler is not None:
            self._sampler.forget()
            self._density = None
        _log.warning("%s: records are gone; going on from %s to %s", self.name, way.after, way.to)
        if self._target is not None:
            kept = {each: at for each, at in self._target.items() if each not in way.after}
            self._target = {**kept, **{each: latest[each] for each in way.to if each in latest}}
        return end

    def _limited(self, position: Offsets, earliest: Offsets, latest: Offsets) -> Offsets:
        end = latest
        if self._target is not None:
            end = {each: min(at, latest[each]) for each, at in self._target.items() if each in latest}
        # Partitions that are new begin where they begin; one that brokers do not tell of stays where it is.
        begin = {each: position.get(each, earliest.get(each, 0)) for each in end}
        if self._wish.max_records is not None:
            end = limits.within(begin, end, self._wish.max_records)
        if self._sampler is not None and self._wish.max_bytes is not None:
            filled = fill(begin, end, self._wish.max_bytes, self._sampler.take, self._density)
            end, self._batch_bytes = filled
            self._density = filled.density(begin) or self._density
        return {**position, **end}

    # --- what a batch reads, and what is done

    def read(self, begin: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        self._is_done(begin)
        self._planned = end
        way = self._memory.passage
        if way is not None and way.is_before(begin):
            ends = {each: at for each, at in end.items() if not way.skips(each, begin, end)}
            return {each: at for each, at in begin.items() if each in ends}, ends
        if not self._repeats:
            return begin, end
        # Kept, because Spark asks again where a frame is used twice.
        self._repeated = self._repeated or self._again(begin, end)
        return self._repeated

    def _again(self, begin: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Spark repeats a batch without asking where it ends. So nobody has compared since the last run."""
        latest = self._asked_latest(end)
        earliest = None if latest is None else self._unless_gone(self._reader.fetchEarliestOffsets)
        if latest is None or earliest is None:
            # Nobody tells any offsets then, but ids are told of the topics that are there.
            latest, earliest, missing = {}, {}, self._brokers.missing()
        else:
            missing = set()
        there = {each: at for each, at in end.items() if each[0] not in missing}
        view = plan.View(latest, earliest, self._brokers.topic_ids())
        found = plan.again(begin, there, view, self._memory.ids, self._wish.on_loss)
        if found != (begin, end):
            _log.warning(
                "%s: records of the batch that is repeated are gone: instead of %s to %s, reading %s to %s",
                self.name, begin, end, *found,
            )  # fmt: skip
        return found

    def _is_done(self, offsets: Offsets) -> None:
        memory = self._memory
        # Before a passage the topics are known by what they are behind it: these offsets are not theirs.
        if self._commits is not None and not (memory.passage and memory.passage.is_before(offsets)):
            self._commits.done(offsets, memory.ids)

    def _progressed(self, offsets: Offsets) -> None:
        """In the thread of Spark's listeners, perhaps late: what is older than the last plan is known."""
        if offsets == self._planned:
            self._is_done(offsets)

    def metrics(self, position: Offsets) -> Mapping[str, str]:
        """As the connector names them, and the size of the last batch where that is limited."""
        found = {}
        if self.latest:
            behind = [max(0, end - position.get(each, 0)) for each, end in self.latest.items()]
            found["minOffsetsBehindLatest"] = str(min(behind))
            found["maxOffsetsBehindLatest"] = str(max(behind))
            found["avgOffsetsBehindLatest"] = str(sum(behind) / len(behind))
        if self._batch_bytes is not None:
            found["estimatedBytes"] = str(round(self._batch_bytes))
        return found

    def stopped(self) -> None:
        if self._sampler is not None:
            self._sampler.close()
        if self._commits is None:
            self._brokers.close()
        else:
            self._commits.flush(_FLUSH_SECONDS)

    def _ended(self) -> None:
        """Behind the last progress of the query, which may come after its stop."""
        assert self._commits is not None, "only then is there a listener"
        self._spark.streams.removeListener(self._listener)
        self._commits.flush(_FLUSH_SECONDS)
        self._commits.close()
        self._brokers.close()

    # --- between Java, the checkpoint and Python

    def _offsets(self, scala: Any) -> Offsets:
        return offsets_in(self._as_offset(scala))

    def _remember(self, memory: plan.Memory) -> None:
        if memory != self._memory:
            self._files.replace(self._kept, memory.text())
            self._memory = memory
