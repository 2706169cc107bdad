"""One pass of an audit: read the events, then the log, then the lakes; judge; tell.

    kafka = {"bootstrap.servers": "127.0.0.1:9092"}
    found = Auditor(spark, AuditConfig(kafka, topics=("orders",), state="/data/audit")).run_once()

The order is the proof: see `plan.py`. No record comes to the driver, only tallies of windows that are not
settled.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from headrace.audit import verdict as verdicts
from headrace.audit.verdict import Difference, State, Verdict
from headrace.audit.verdict_topic import publish
from headrace.core.errors import HeadraceError
from headrace.spark.audit import expressions, plan, tiers
from headrace.spark.audit import memory as memories
from headrace.spark.audit.blocking import finish
from headrace.spark.audit.books import Books
from headrace.spark.audit.config import MIRROR, AuditConfig
from headrace.spark.audit.events import NO_NEWS, News, read_events
from headrace.spark.audit.memory import Memory
from headrace.spark.audit.mirrors import mirror_tier
from headrace.spark.audit.offsets import Ends, Range, ends_of, ranges
from headrace.spark.audit.picture import LakeTier, Partition, Picture, Since


class AuditDifference(HeadraceError):
    """The first difference of a pass, for those who want it raised."""

    def __init__(self, verdict: Verdict, difference: Difference) -> None:
        window = verdicts.window_text(verdict.window_ms)
        super().__init__(f"{verdict.topic}, window {window}, {difference}")
        self.verdict = verdict
        self.difference = difference


@dataclass(frozen=True)
class PassResult:
    step: int
    #: Of every window that was not settled before.
    verdicts: tuple[Verdict, ...]
    #: What was published.
    news: tuple[Verdict, ...]
    records: int
    events: int
    #: Offsets that retention had taken away before this audit read them.
    gone: Mapping[Partition, int]
    seconds: float
    #: Records of the topic of events that are none.
    strange: int = 0

    def counts(self) -> dict[str, int]:
        found = dict.fromkeys((state.value for state in State), 0)
        for verdict in self.verdicts:
            found[verdict.state] += 1
        return found

    def raise_first_difference(self) -> None:
        first = plan.first_difference(self.verdicts)
        if first is not None:
            raise AuditDifference(*first)


class Auditor:
    """Works in a session that it is given. Books that exist are gone on with."""

    def __init__(self, spark: SparkSession, config: AuditConfig) -> None:
        self.spark = spark
        self.config = config
        self.books = Books(spark, config.state)
        self.books.create()

    def run_once(self) -> PassResult:
        began = time.monotonic()
        config, standing = self.config, self.books.standing()
        step, memory = standing.step + 1, memories.decode(standing.memory)
        memory.agree(config)
        people, since = memory.roster, {topic: memory.since[topic] for topic in config.topics}
        events_ms = time.time_ns() // 1_000_000
        news, positions = self._events(standing.positions) if config.with_producers else (NO_NEWS, {})
        told = people.hear(news.events, config.window_ms)
        for incarnation, moment_ms in news.retired:
            people.retire(incarnation, moment_ms)
        ends = self._ends(since)
        wanted = ranges(standing.positions, ends, config.max_records_per_partition)
        read = {place: span.end for place, span in wanted.items()}
        records = sum(span.end - span.start for span in wanted.values())
        if not config.with_producers:
            memory.listen(ends, read, events_ms)
        kept = memory.encode()
        if records or positions or kept != standing.memory:
            log = self._count(wanted) if records else None
            self.books.enter(log, told, kept, {**positions, **read}, step)
        picture = self._picture(memory, since, ends, read, events_ms)
        judged = self._judged(picture)
        chosen = plan.windows_to_judge(picture, since, judged)
        found = [plan.judge(picture, *window, partitions) for window, partitions in chosen.items()]
        new = plan.settle(found, judged)
        self._tell(new, step)
        self.books.compact(step)
        gone = {place: span.gone for place, span in wanted.items() if span.gone}
        seconds = time.monotonic() - began
        events, strange = len(news.events), news.strange
        return PassResult(step, tuple(found), tuple(new), records, events, gone, seconds, strange)

    # --- reading ------------------------------------------------------------------------------------------

    def _events(self, before: Mapping[Partition, int]) -> tuple[News, dict[Partition, int]]:
        """What is new, and how far the topic of events is read then: nothing, if nothing is new."""

        async def read() -> tuple[News, dict[Partition, int]]:
            async with self.config.cluster() as cluster:
                ends = await ends_of(cluster, {self.config.events_topic: None})
                wanted = {
                    place: span for place, span in ranges(before, ends).items() if span.end > span.start
                }
                return await read_events(cluster, wanted), {place: span.end for place, span in wanted.items()}

        return finish(read())

    def _ends(self, since: Since) -> dict[Partition, Ends]:
        async def ask() -> dict[Partition, Ends]:
            async with self.config.cluster() as cluster:
                return await ends_of(cluster, since)

        return finish(ask())

    def _count(self, wanted: Mapping[Partition, Range]) -> DataFrame:
        records = tiers.read_range(self.spark, self.config.kafka, wanted)
        rows = expressions.tallies_of_records(records, self.config.window_ms)
        # After the ends were asked for: whatever is read was handed to its producer before this.
        return rows.withColumn("asked_ms", F.lit(time.time_ns() // 1_000_000))

    # --- judging ------------------------------------------------------------------------------------------

    def _picture(
        self,
        memory: Memory,
        since: Since,
        ends: Mapping[Partition, Ends],
        positions: Mapping[Partition, int],
        events_ms: int,
    ) -> Picture:
        config, people = self.config, memory.roster
        certified = self.books.last_verdicts().where(F.col("state") == State.CERTIFIED.value)
        cells = tiers.unsettled_cells(self.books, since, certified.select("topic", "window_ms", "step"))
        lakes: dict[str, LakeTier] = {}
        for tier in dict.fromkeys(table.tier for table in config.lakes):
            tables = [table for table in config.lakes if table.tier == tier]
            lakes[tier] = tiers.lake_tier(self.spark, tables, config, cells.windows, positions)
        if config.mirror is not None:
            lakes[MIRROR] = mirror_tier(self.spark, config.mirror, config.window_ms, cells.windows, positions)
        now_ms = time.time_ns() // 1_000_000
        producers = people.states(config.window_ms, now_ms, config.silent_after_ms)
        return Picture(
            now_ms=now_ms,
            events_ms=events_ms,
            window_length_ms=config.window_ms,
            lateness_ms=config.lateness_ms,
            told_topics=people.told_topics,
            producers=producers if config.with_producers else (),
            reported=cells.told,
            uncertain=cells.uncertain,
            log=cells.log,
            unread={
                place: end.log_end - positions[place]
                for place, end in ends.items()
                if end.log_end > positions[place]
            },
            heard=memory.heard,
            lakes=lakes,
            with_producers=config.with_producers,
            clock_skew_ms=config.clock_skew_ms,
            silent_after_ms=config.silent_after_ms,
        )

    def _judged(self, picture: Picture) -> dict[tuple[str, int], Verdict]:
        """The last verdicts of windows that may be judged now."""
        cells = (*picture.reported, *picture.log)
        oldest = min((cell.window_ms for cell in cells), default=picture.now_ms)
        oldest = min(oldest, picture.now_ms - plan.EMPTY_AT_MOST * picture.window_length_ms)
        last = self.books.last_verdicts().where(F.col("window_ms") >= oldest)
        return {
            (row.topic, row.window_ms): verdicts.decode(row.document.encode())
            for row in last.toLocalIterator()
        }

    # --- telling ------------------------------------------------------------------------------------------

    def _tell(self, news: list[Verdict], step: int) -> None:
        """First to the topic, then into the books: after a crash between the two it is told again."""
        if not news:
            return
        finish(publish(self.config.cluster(), self.config.verdicts_topic, news))
        self.books.enter_verdicts(news, step)
