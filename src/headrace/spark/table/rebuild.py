"""A table made anew from the beginning of its topic, in one commit that readers see whole or not at all.

The topic's end is fixed first. What is up to there is reduced to the last record of each key, and replaces
the table's rows and columns in one commit. Then the views and indexes are made from it. The next run goes on
from that end. A rebuild that is cut off before its commit leaves the table as it was; after it, what is
derived is made at the next start.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from headrace.core.errors import HeadraceError
from headrace.spark import columns
from headrace.spark.lake import broker, locks
from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.lake.files import files_for
from headrace.spark.lake.plan import reader_options
from headrace.spark.lake.table_schema import follow
from headrace.spark.lake.tables.table import Commit
from headrace.spark.table import changes
from headrace.spark.table.computing import kept
from headrace.spark.table.config import TableConfig
from headrace.spark.table.identity import is_another
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.loader import add_letters
from headrace.spark.table.opened import Opened
from headrace.spark.table.plan import definition, derived_definitions, route_of, table_state, without
from headrace.spark.table.tables.keyed import last_step


class TopicMissing(HeadraceError):
    """There is nothing to rebuild from."""


class Rebuilt(NamedTuple):
    table: str
    step: int
    rows: int
    dead_letters: int
    """Keys with records that cannot be read."""
    ends: dict[int, int]
    """The next run goes on here, for each partition."""


def rebuild(
    spark: SparkSession, config: TableConfig, name: str, *, told: Callable[[str], None] = lambda _: None
) -> Rebuilt:
    """No run goes on meanwhile: both would change the same table. Readers need not stop."""
    spec, store = config.table(name), config.store
    with locks.held(store.state, "run", spark, part="table"):
        if spec.topic not in broker.topics(spark, store.kafka):
            raise TopicMissing(f"there is no topic {spec.topic}: nothing to make {name} from")
        # Before its end: if it is made anew in between, the next start sees that it is another.
        with closing(broker.TopicIds(spark, store.kafka)) as ids:
            made_from = ids.of(spec.topic)
        indexes = broker.partitions(spark, store.kafka, [spec.topic])[spec.topic]
        ends = broker.ends(spark, store.kafka, spec.topic, indexes)
        lineage = Lineage(files_for(store.state, spark), table_state(store, spec))
        opened = Opened(spark, store, spec)
        before = lineage.topic_id(lineage.settle(last_step(opened.main)))
        step = opened.last_of_all() + 1
        begin = {(spec.topic, index): end for index, end in ends.items()}
        lineage.prepare(step, begin, definition(spec), made_from)
        told(f"{name}: reading {spec.topic}")
        counts = _replace(opened, step, begin, told, anew=is_another(before, made_from))
        lineage.settle(step)
        told(f"{name}: deriving {', '.join(derived_definitions(spec)) or 'nothing'}")
        behind = opened.derive(list(derived_definitions(spec)), step)
        lineage.set_derived(without(derived_definitions(spec), behind))
    return Rebuilt(name, step, counts.upserts, counts.bad, ends)


def _replace(
    opened: Opened, step: int, ends: Offsets, told: Callable[[str], None], *, anew: bool
) -> changes.Counts:
    """`anew`: the topic is another than the one that table and dead letters are from."""
    spec = opened.spec
    route = route_of(opened.store, spec, step)
    shaped = changes.shape(_topic(opened, ends), spec, route)
    judged = changes.judge(shaped, follow(shaped.incoming, shaped.incoming), spec)
    with kept(changes.last_of_each_key(judged, spec)) as last:
        counts = changes.count(last)
        told(f"{spec.name}: writing {counts.upserts:,} rows")
        if anew:
            _remove_letters(opened)  # their offsets would pass for those of the new one
        if counts.bad:
            # Before the table's commit: a record is in one of the two, whenever this is cut off.
            # A writer of its own: one that was cut off had this step too, and perhaps fewer letters. Those
            # that are there are left out anyway.
            add_letters(changes.dead_letters(judged), opened.dead, Commit(f"rebuild-{uuid.uuid4()}", 0))
        rows = changes.good(last).filter(~sf.col(changes.DELETED)).drop(changes.DELETED)
        opened.main.replace(rows, step)
        _remove_letters(opened, changes.readable(judged))
    return counts


def _topic(opened: Opened, ends: Offsets) -> DataFrame:
    options = reader_options(opened.store, opened.spec.topic)
    del options["maxOffsetsPerTrigger"]  # of streams only
    options["endingOffsets"] = offsets_json(ends)
    return opened.spark.read.format("kafka").options(**options).load()


def _remove_letters(opened: Opened, among: DataFrame | None = None) -> None:
    """The topic's, all of them or those of the records `among`, which the table has now.

    A letter of a record that the log does not have any more stays: there is nothing else left of it.
    """
    if opened.dead.schema() is None:
        return
    gone = opened.dead.read().filter(sf.col(columns.TOPIC) == opened.spec.topic).select(*columns.IDENTITY)
    if among is not None and not gone.isEmpty():  # else the topic need not be read for them
        gone = gone.join(among, list(columns.IDENTITY), "left_semi")
    if not gone.isEmpty():
        opened.dead.remove(gone)
