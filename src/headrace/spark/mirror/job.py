"""A mirror at work: batch after batch, each a job of the sink whose note is the position.

from headrace.spark.mirror import config, job
job.run(spark, config.load(Path("mirror.toml")), once=True)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.client.errors import ClientFailure, Refused
from headrace.spark.jvm import require_kafka
from headrace.spark.lake.failures import short
from headrace.spark.mirror import clusters, fetching, groups, rights, translation_topic
from headrace.spark.mirror.clusters import Sides, cluster_of, look
from headrace.spark.mirror.config import MirrorConfig
from headrace.spark.mirror.frames import pieces_for
from headrace.spark.mirror.plan import (
    Accept,
    Making,
    Seen,
    Step,
    accepted,
    adopted,
    making,
    step,
    stopped,
)
from headrace.spark.mirror.position import Position, position_of
from headrace.spark.mirror.problems import MirrorRefused, SourceChanged
from headrace.spark.mirror.progress import GroupAtSource
from headrace.spark.mirror.refusals import OF_ONE_TOPIC, Refusals
from headrace.spark.mirror.shares import Passing, Share, shared, spans_of
from headrace.spark.mirror.translation import merge
from headrace.spark.mirror.translation_topic import Merger, TranslationTopic
from headrace.spark.sink.decision import TopicRefuses
from headrace.spark.sink.job import Jobs, Settled, Shares
from headrace.spark.sink.loop_thread import LoopThread

_log = logging.getLogger(__name__)
_LEAST_TO_MERGE: Final = 256
_TRIES: Final = 5
_LONGEST_PAUSE: Final = 30.0


@dataclass
class Totals:
    """What a run has done."""

    records: int = 0
    batches: int = 0
    bytes: int = 0
    offsets_carried: int = 0
    rights_changed: int = 0
    stopped: Mapping[str, str] = field(default_factory=dict)
    """By topic, why it stands still."""


class Mirror:
    """One at a time: a newer one, wherever it is, shuts this one out."""

    def __init__(self, spark: SparkSession, config: MirrorConfig, accept: Accept | None = None) -> None:
        self.config = config
        self.totals = Totals()
        self.position = Position()
        self._spark = spark
        self._accept = accept
        self._refusals = Refusals()
        self._unlike: dict[str, str] = {}
        self._loop = LoopThread()
        self._jobs = Jobs(config.options())
        self._sides = Sides(cluster_of(config.source, config.name), cluster_of(config.target, config.name))
        self._group = None if config.group is None else GroupAtSource(self._sides.source, config.group)
        self._translations = TranslationTopic(self._sides.target, config.translations)
        self._merger = Merger(self._sides.target, config.translations, config.name)
        self._upkeep_at = 0.0
        self._groups_at = 0.0
        self._rights_at = 0.0

    def __enter__(self) -> Self:
        self._loop.__enter__()
        self._jobs.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._loop.run(self._sides.close())
            self._jobs.__exit__(kind, error, trace)
        finally:
            self._loop.__exit__(kind, error, trace)

    # --- beginning -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Shut out whoever ran before, and know where to go on."""
        self._loop.run(translation_topic.prepare(self._sides.target, self.config.translations))
        settled = self._jobs.settle()
        self._loop.run(self._merger.begin())
        self.position = self._identified(position_of(settled.note))
        if settled.lost_rows:
            self._repair(settled)

    def _identified(self, position: Position) -> Position:
        source, target = self._loop.run(self._sides.ids())
        for side, known, found in (("source", position.source, source), ("target", position.target, target)):
            if known and known != found:
                raise MirrorRefused(
                    f"mirror {self.config.name} was made for a {side} cluster with the id {known}; the one "
                    f"at [{side}] is {found}. Offsets of another cluster mean nothing there: give the mirror "
                    "another name"
                )
        return Position(source, target, position.number, position.topics)

    def _repair(self, settled: Settled) -> None:
        """The last batch was decided and timed out before it was committed: the same once more."""
        last = settled.last
        assert last is not None, "who has lost rows has decided"
        begin, end = position_of(last.before).offsets(), self.position.offsets()
        begin = {each: at for each, at in begin.items() if end.get(each, at) > at}
        _log.warning("batch %d was decided and timed out: it is written again", self.position.number)
        again = Step(begin, {each: end[each] for each in begin}, self.position, {})
        self._write(again, last.job)

    # --- one round -----------------------------------------------------------------------------------

    def look(self) -> Seen:
        """What both clusters have now; topics that are new to the mirror are adopted."""
        seen = self._loop.run(look(self._sides, self.config, self.position))
        if self._accept is not None:
            self._go_to(accepted(self.position, seen.view, self._accept))
            self._accept = None
        self._check_names(seen)
        to_do = making(self.position, seen, self._refusals.standing())
        if any(to_do):
            self._prepare(to_do, seen)
            seen = self._loop.run(look(self._sides, self.config, self.position))
        if new := adopted(self.position, seen, self.config.start, self._refusals.standing()):
            # Decided before anything is written: what lies in the target is the mirror's own from now on.
            self._go_to(self.position.with_topics(new))
        return seen

    def _prepare(self, to_do: Making, seen: Seen) -> None:
        """A topic that the target refuses stands still, and the others go on."""
        config, sides = self.config, self._sides
        for name in dict.fromkeys((*to_do.check, *to_do.make, *to_do.grow)):
            target = seen.wanted[name]
            try:
                if name in to_do.check and config.existing == "refuse":
                    self._loop.run(clusters.check_empty(sides, target))
                if name in to_do.make:
                    factor = config.replication_factor
                    settings, known = config.settings, config.decisions
                    made = clusters.make(
                        sides, name, target, known, settings=settings, replication_factor=factor
                    )
                    self._loop.run(made)
                if name in to_do.grow:
                    self._loop.run(clusters.grow(sides, target, to_do.grow[name]))
            except MirrorRefused as error:
                self._refusals.note(name, str(error))
            except Refused as error:
                if error.code not in OF_ONE_TOPIC:
                    raise
                self._refusals.note(
                    name, f"topic {target} cannot be made on the target as {name} is: {error}"
                )

    def refused(self, error: TopicRefuses) -> None:
        """By the target, while a batch was written: nothing of that batch is there."""
        names = [name for name, topic in self.position.topics.items() if topic.target == error.topic]
        if not names:
            raise error
        for name in names:
            self._refusals.note(name, f"topic {error.topic} of the target refuses what {name} has: {error}")

    def _check_names(self, seen: Seen) -> None:
        same = [name for name, target in seen.wanted.items() if name == target]
        if same and self.position.source == self.position.target:
            raise MirrorRefused(
                f"source and target are one cluster, and topic {same[0]} would be mirrored into itself: "
                'write target = "mirrored.{topic}" below [[topics]]'
            )

    def _go_to(self, position: Position) -> None:
        if position != self.position:
            self._jobs.run(None, _new_job(), position.text())
            self.position = position

    def plan(self, seen: Seen) -> Step:
        refused = self._refusals.standing()
        return step(self.position, seen, self.config.max_records_per_batch, refused)

    def write(self, planned: Step) -> None:
        self._write(planned, _new_job())

    def _write(self, planned: Step, job: str) -> None:
        config = self.config
        done = self._jobs.run(
            self._shares(planned),
            job,
            planned.after.text(),
            aside=pieces_for(config.translations, planned.after),
            check=lambda: self._check_source(planned),
        )
        self.position = planned.after
        for topic, _ in planned.end:
            self._refusals.went_well(topic)
        self.totals.records += done.rows
        self.totals.bytes += done.bytes
        self.totals.batches += 1

    def _shares(self, planned: Step) -> Shares:
        config, position = self.config, planned.after
        tasks = config.tasks or self._spark.sparkContext.defaultParallelism
        targets = {name: topic.target for name, topic in position.topics.items()}
        passing = Passing(position.source, position.target)
        spans = shared(spans_of(planned.begin, planned.end, targets), tasks)
        shares = [Share(config.name, config.source, passing, each) for each in spans]
        return Shares(self._spark, shares, fetching.read)

    def _check_source(self, planned: Step) -> None:
        """What was read is what was planned: its topics are still the same, and nothing was removed before it
        was read."""
        seen = self._loop.run(look(self._sides, self.config, self.position))
        concerned = {topic for topic, _ in planned.end}
        found = {topic: text for topic, text in stopped(self.position, seen).items() if topic in concerned}
        if found:
            raise SourceChanged("; ".join(found.values()))

    # --- what goes along -----------------------------------------------------------------------------

    def attend(self, seen: Seen, *, now: bool = False) -> None:
        """The mirror's own group, settings, groups, rights and merges, when they are due."""
        if self._group is not None:
            there = {each: at for each, at in self.position.offsets().items() if each[0] in seen.view.ids}
            self._loop.run(self._group.tell(there))
        clock = time.monotonic()
        upkeep, carrying = now or clock >= self._upkeep_at, now or clock >= self._groups_at
        if upkeep:
            self._upkeep_at = clock + self.config.discover_seconds
            if self.config.settings:
                self._follow_settings(seen)
        if self.config.groups is not None and carrying:
            self._groups_at = clock + self.config.groups.every_seconds
            self._loop.run(self._translations.refresh())
            carried = groups.carry(
                self._sides,
                self.config.name,
                self.config.groups,
                self.position,
                self._translations.translation,
            )
            self.totals.offsets_carried += self._loop.run(carried)
        if self.config.acls is not None and (now or clock >= self._rights_at):
            self._rights_at = clock + self.config.acls.every_seconds
            targets = {
                name: topic.target for name, topic in self.position.topics.items() if name in seen.wanted
            }
            followed = rights.follow(self._sides, targets, self._translations, self._merger)
            self.totals.rights_changed += sum(map(len, self._loop.run(followed)[:2]))
        if upkeep:
            self._merge()

    def _follow_settings(self, seen: Seen) -> None:
        for name, topic in self.position.topics.items():
            if name in seen.view.ids and topic.target in seen.target_ids and name in seen.wanted:
                try:
                    changed = self._loop.run(clusters.follow_settings(self._sides, name, topic.target))
                except Refused as error:
                    if error.code not in OF_ONE_TOPIC:
                        raise
                    if self._unlike.get(name) != str(error):
                        self._unlike[name] = str(error)
                        _log.error("topic %s has not all settings of %s: %s", topic.target, name, error)
                    continue
                self._unlike.pop(name, None)
                if changed:
                    _log.info("topic %s: %s", topic.target, ", ".join(sorted(changed)))

    def _merge(self) -> None:
        self._loop.run(self._translations.refresh())
        for place, partition in self._translations.translation.partitions.items():
            topic = self.position.topics.get(place.topic)
            if topic is None or len(partition.pieces) < _LEAST_TO_MERGE:
                continue
            start = self._loop.run(clusters.start_of(self._sides.target, topic.target, place.partition))
            found = merge(place, partition, least=_LEAST_TO_MERGE, target_start=start)
            if found is not None:
                self._loop.run(self._merger.merge(place, found))


def run(
    spark: SparkSession,
    config: MirrorConfig,
    *,
    once: bool = False,
    stop: threading.Event | None = None,
    accept: Accept | None = None,
    told: Callable[[Mirror, Seen, Step], None] = lambda *_: None,
    turn: Callable[[Callable[[], None]], None] = lambda work: work(),
    patient: bool = True,
) -> Totals:
    """Mirror until `stop` is set, or with `once` what there is now. Raises MirrorRefused where nothing can go
    on, and with `once` where some topic cannot. `told` is called in each round, `turn` with what runs Spark
    jobs. Whoever is not `patient` is given each failure, and starts anew by itself."""
    require_kafka(spark, "the mirror")
    stopping = threading.Event() if stop is None else stop
    failures = 0
    goal: Mapping[tuple[str, int], int] | None = None
    with Mirror(spark, config, accept) as mirror:
        settled = False
        while not stopping.is_set():
            try:
                if not settled:
                    turn(mirror.begin)
                    settled = True
                seen = mirror.look()
                goal = seen.view.latest if goal is None else goal
                planned = mirror.plan(seen)
                _note_stopped(mirror, planned.stopped)
                told(mirror, seen, planned)
                if planned.end:
                    turn(partial(mirror.write, planned))
                mirror.attend(seen)
                failures = 0
            except TopicRefuses as error:
                settled = False
                mirror.refused(error)
                continue
            except (ClientFailure, PySparkException, SourceChanged) as error:
                # What was decided meanwhile, nobody here knows: it is read again.
                settled = False
                failures += 1
                if not patient or (once and failures >= _TRIES):
                    raise
                _log.warning("the batch is tried again: %s", short(str(error)))
                stopping.wait(min(2.0 ** (failures - 1), _LONGEST_PAUSE))
                continue
            if once and _is_there(mirror.position, goal, planned.stopped):
                mirror.attend(seen, now=True)
                if planned.stopped:
                    raise MirrorRefused("; ".join(planned.stopped.values()))
                break
            if not planned.end:
                if planned.stopped and planned.stopped.keys() >= mirror.position.topics.keys():
                    raise MirrorRefused("; ".join(planned.stopped.values()))
                stopping.wait(config.trigger_seconds)
        return mirror.totals


def _is_there(position: Position, goal: Mapping[tuple[str, int], int], still: Mapping[str, str]) -> bool:
    at = position.offsets()
    return all(at.get(each, 0) >= end for each, end in goal.items() if each[0] not in still)


def _note_stopped(mirror: Mirror, still: Mapping[str, str]) -> None:
    for topic, text in still.items():
        if mirror.totals.stopped.get(topic) != text:
            _log.error("%s", text)
    mirror.totals.stopped = dict(still)


def _new_job() -> str:
    return uuid4().hex
