"""One topic's batches into its two tables, each batch once.

Spark repeats the batch that was under way when a driver died, with the same offsets. Each table knows by
itself whether it has a batch (`Table.last`, `Table.append`). Records come first and dead letters after them,
so:

- neither is there: both are written;
- the records are there, the dead letters perhaps not: dead letters are what the batch has and the table has
  not. They are not judged anew, because the schema may have been changed meanwhile: a record would get lost
  between a "bad" of yesterday and a "good" of today;
- both are there: nothing happens.

How many records could not be decoded is counted while the good ones are written. Only a batch that has some
is read a second time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from headrace.core.errors import HeadraceError
from headrace.spark import columns
from headrace.spark.lake import locks, shaping
from headrace.spark.lake.batches import Written
from headrace.spark.lake.checkpoint import Checkpoint
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import Following, follow
from headrace.spark.lake.tables.matching import within
from headrace.spark.lake.tables.opening import open_table
from headrace.spark.lake.tables.table import Commit, Table

_OBSERVED_SECONDS = 300.0
_UNDECODABLE = "could not be decoded when it was loaded"


class WrittenByAnother(HeadraceError):
    """Two drivers work on the same state."""


class TopicLoader:
    """The function for `foreachBatch`. One for each start of a query: only its first batch can be a
    repetition.
    """

    def __init__(
        self, config: LakeConfig, route: Route, checkpoint: Checkpoint, check_topic: Callable[[], None]
    ) -> None:
        """`check_topic` raises if the topic is another by now."""
        self.config = config
        self.route = route
        self.checkpoint = checkpoint
        self.check_topic = check_topic
        self.written: dict[int, Written] = {}
        """What the last batches put into the tables, by their numbers; whoever notes it takes it out."""
        self._first = True

    def __call__(self, frame: DataFrame, batch: int) -> None:
        writer = self.checkpoint.query_id()
        assert writer is not None, "Spark writes it before the first batch"
        self.check_topic()
        spark = frame.sparkSession
        table = open_table(spark, self.config, self.route.table)
        dead = open_table(spark, self.config, self.route.dead_letters)
        self.load(frame, Commit(writer, batch), table, dead)

    def load(self, frame: DataFrame, commit: Commit, table: Table, dead: Table) -> None:
        shaped = shaping.shape(frame, self.route)
        is_new = self._first and table.schema() is None
        following = prepare(table, shaped)
        judged = shaping.judge(shaped, following)
        if self._first:
            table.recover(commit.writer)
            repeated = not is_new and self._there(table, commit)
            self._first = False
            if repeated:
                self._dead_of_repetition(judged, commit, table, dead)
                return
        observed = Observation()
        if shaped.typed is None:
            rows = shaping.good_rows(judged, shaped, following)
            table.append(rows.observe(observed, sf.count("*").alias("rows")), commit)
            self.written[commit.batch] = Written(counted(observed, table)["rows"], 0)
            return
        table.append(shaping.counted_rows(judged, shaped, following, observed), commit)
        counts = counted(observed, table)
        self.written[commit.batch] = Written(counts["rows"], counts["problems"])
        if counts["problems"]:
            dead.create(shaping.dead_letter_schema(frame))
            dead.recover(commit.writer)
            dead.append(shaping.dead_letters(judged), commit)

    def _there(self, table: Table, commit: Commit) -> bool:
        """By the table's own record of commits, or, where somebody has expired that, by the rows
        themselves.
        """
        if table.last(commit.writer) >= commit.batch:
            return True
        ranges = self.checkpoint.ranges(commit.batch)
        return ranges is not None and bool(ranges) and not table.read().filter(within(ranges)).isEmpty()

    def _dead_of_repetition(self, judged: DataFrame, commit: Commit, table: Table, dead: Table) -> None:
        """Also where nothing is decoded now: that may have been changed since the batch was written."""
        if dead.schema() is not None:
            dead.recover(commit.writer)
            if dead.last(commit.writer) >= commit.batch:
                return
        there = table.read()
        if ranges := self.checkpoint.ranges(commit.batch):
            there = there.filter(within(ranges))
        lost = judged.join(there.select(*columns.IDENTITY), list(columns.IDENTITY), "left_anti")
        if not lost.isEmpty():
            dead.create(shaping.dead_letter_schema(judged))
            dead.append(shaping.dead_letters(lost, otherwise=_UNDECODABLE), commit)


def prepare(table: Table, shaped: shaping.Shaped) -> Following:
    """Make the table, or give it the columns that it lacks. Topics may share a table: one after the other, so
    that none overlooks a column that another has just added.
    """
    with locks.of_threads(table.name):
        known = table.schema()
        if known is None:
            table.create(shaped.incoming)
            known = table.schema()
            assert known is not None, f"{table.name} was made"
        following = follow(known, shaped.incoming, scale_may_grow=table.scale_may_grow)
        if following.changes:
            table.change(following)
        return following


def counted(observed: Observation, table: Table) -> dict[str, int]:
    """Known once the write is over. It never is where the table skipped the write: then another made it."""
    found: list[dict[str, int]] = []
    waiting = threading.Thread(target=lambda: found.append(observed.get), daemon=True)
    waiting.start()
    waiting.join(_OBSERVED_SECONDS)
    if not found:
        raise WrittenByAnother(
            f"{table.name}: another driver wrote this batch; run one `headrace lake run` for each state"
        )
    return found[0]
