"""One batch into a table and all that is derived from it, each once.

A batch is one step. Its commits come in this order, each atomic by itself and none twice:

1. dead letters, so that a schema that is fixed between a kill and the restart loses none of them;
2. the table;
3. the views, which need each index as it was before the batch;
4. the indexes.

A view that cannot be computed from the values that there are is left behind: the rest goes on, and the next
batch or start makes it whole.

The next batch begins when all are through. So at any moment every other table is at the same step or, in
this order, one ahead of those behind it. A repetition finds what is there by the step, and goes on where it
was cut off.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf

from headrace.core.errors import HeadraceError
from headrace.spark import columns
from headrace.spark.lake.batches import Written
from headrace.spark.lake.config import LakeConfig
from headrace.spark.lake.files import Files
from headrace.spark.lake.loader import counted, prepare
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import follow
from headrace.spark.lake.tables.table import Commit
from headrace.spark.table import changes, derived, steps
from headrace.spark.table.computing import NotComputed, computed, kept
from headrace.spark.table.config import TableSpec, ViewSpec
from headrace.spark.table.opened import Opened
from headrace.spark.table.plan import check_key
from headrace.spark.table.steps import LastStep
from headrace.spark.table.tables.keyed import KeyedTable, commit, last_step
from headrace.spark.table.upkeep import Upkeep

_log = logging.getLogger(__name__)


class Refused(HeadraceError):
    """A column of a view or index cannot become what the configuration asks; says what to do."""


class StepTaken(HeadraceError):
    """The table is past the batch, which would be lost in silence; says what to do."""


class TableLoader:
    """The function for `foreachBatch`."""

    def __init__(
        self,
        store: LakeConfig,
        spec: TableSpec,
        route: Route,
        first_step: int,
        files: Files,
        check_topic: Callable[[], None],
        behind: dict[str, str] | None = None,
    ) -> None:
        """`check_topic` raises if the topic is another by now.

        `behind` are views that cannot be computed, and why. It is kept up, for whoever looks at it.
        """
        self.store = store
        self.spec = spec
        self.route = route
        self.first_step = first_step
        self.files = files
        self.check_topic = check_topic
        self.behind = {} if behind is None else behind
        self.written: dict[int, Written] = {}
        """What the last batches changed, by their numbers; whoever notes it takes it out."""

    def __call__(self, frame: DataFrame, batch: int) -> None:
        opened = Opened(frame.sparkSession, self.store, self.spec)
        self.written[batch] = self.load(frame, self.first_step + batch, opened)
        Upkeep(self.store.maintenance, self.files).look(opened)

    def load(self, frame: DataFrame, step: int, opened: Opened) -> Written:
        last = last_step(opened.main)
        if last > step:
            raise StepTaken(
                f"{self.spec.name} is at step {last} already, and this batch is step {step}: another driver "
                "writes to the table, or its checkpoint is an old one. Let only one run, and make the table "
                f"anew: `headrace table rebuild {self.spec.name}`"
            )
        shaped = changes.shape(frame, self.spec, self.route)
        known = opened.main.schema()
        if known is not None:  # before anything is changed
            check_key(self.spec, follow(known, shaped.incoming, scale_may_grow=opened.main.scale_may_grow))
        following = prepare(opened.main, shaped)
        judged = changes.judge(shaped, following, self.spec)
        with kept(changes.last_of_each_key(judged, self.spec)) as rows:
            counts = changes.count(rows)
            # Only now: the records are read, and an id never comes back. So they are all of the topic.
            self.check_topic()
            letters = 0
            if counts.bad and last_step(opened.dead) < step:
                letters = add_letters(changes.dead_letters(judged), opened.dead, commit(step))
            if counts.upserts or counts.deletes:
                self._apply(changes.good(rows), step, opened)
        done = LastStep(step, time.time_ns() // 1_000_000, *counts)
        steps.store(self.files, self.route.state, done)
        return Written(counts.upserts + counts.deletes, letters)

    def _apply(self, changed: DataFrame, step: int, opened: Opened) -> None:
        spec = self.spec
        newer = f"{changes.place_sql(spec.order, 'new')} > {changes.place_sql(spec.order, 'old')}"
        if last_step(opened.main) < step:
            opened.main.merge(changed, spec.key_columns, step, newer)
        indexes = {index.name: index for index in spec.indexes}
        before = {name: opened.open(name) for name in indexes}
        for name, index in indexes.items():
            _follow(before[name], derived.index_changes(changed, spec, index))
        for view in spec.views:
            if last_step(opened.open(view.name)) < step:
                touched = derived.touched(changed, before[view.index].read(), spec, indexes[view.index])
                self._bring_up(view, touched, step, opened)
        behind = {name: index for name, index in indexes.items() if last_step(before[name]) < step}
        if behind:
            with kept(derived.accepted(changed, opened.main.read(), spec)) as taken:
                for name, index in behind.items():
                    rows = derived.index_changes(taken, spec, index)
                    before[name].merge(rows, spec.key_columns, step, newer)

    def _bring_up(self, view: ViewSpec, touched: DataFrame, step: int, opened: Opened) -> None:
        """By what the batch touches. One that lacks a step lacks what that touched: it is made whole."""
        try:
            if view.name in self.behind:
                opened.derive_view(view, step)
                del self.behind[view.name]
                return
            table, index = opened.open(view.name), opened.index_of(view)
            with (
                kept(touched) as values,
                computed(derived.view_changes(opened.main.read(), values, view, index), view) as rows,
            ):
                _follow(table, rows)
                table.merge(rows, index.columns, step, None)
        except NotComputed as error:
            _log.error("%s: %s", self.spec.name, error)
            self.behind[view.name] = str(error)


def add_letters(letters: DataFrame, dead: KeyedTable, noted: Commit) -> int:
    """Those that are not there: a rebuild that was cut off may have written some already. How many."""
    if dead.schema() is None:
        dead.create(letters.schema)
    there = dead.read().select(*columns.IDENTITY)
    new = letters.join(there, list(columns.IDENTITY), "left_anti").select(*letters.columns)
    observed = Observation()
    dead.append(new.observe(observed, sf.count("*").alias("letters")), noted)
    return counted(observed, dead)["letters"]


def _follow(table: KeyedTable, rows: DataFrame) -> None:
    """Make an index or a view, or give it the columns that it lacks, and the width."""
    incoming = rows.drop(changes.DELETED).schema
    known = table.schema()
    if known is None:
        table.create(incoming)
        return
    following = follow(known, incoming, scale_may_grow=table.scale_may_grow)
    if following.conflicts:
        raise Refused(
            f"{table.name}: {following.conflicts[0].reason}. `headrace table rebuild` makes it anew"
        )
    if following.changes:
        table.change(following)
