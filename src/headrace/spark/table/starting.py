"""Before a table's query starts: which lineage it goes on with, from where, and what is to be derived."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import functions as sf

from headrace.spark import columns
from headrace.spark.lake import broker
from headrace.spark.lake.checkpoint import Offsets, offsets_json
from headrace.spark.lake.tables.table import Table
from headrace.spark.table.config import TableSpec
from headrace.spark.table.identity import check_topic
from headrace.spark.table.lineage import Lineage
from headrace.spark.table.opened import Opened
from headrace.spark.table.plan import (
    NeedsRebuild,
    Standing,
    definition,
    derived_definitions,
    renumbered,
    starting,
    to_derive,
    without,
)
from headrace.spark.table.tables.keyed import last_step


class Start(NamedTuple):
    rebuilt: int
    topic_id: str | None
    """Of the topic that the table is made from, where that is known."""
    first_step: int
    offsets: str | None
    """For the connector. None where the checkpoint knows, or all is to be read."""
    behind: dict[str, str]
    """Views that cannot be computed, and why."""


def settle(lineage: Lineage, opened: Opened) -> int:
    """The lineage to go on with. A table that somebody removed begins anew: the log is the truth."""
    step = last_step(opened.main)
    rebuilt = lineage.settle(step)
    if opened.main.schema() is None and lineage.checkpoint(rebuilt).committed() is not None:
        lineage.forget(rebuilt)
        rebuilt = 0
    return rebuilt


def prepare(lineage: Lineage, opened: Opened, rebuilt: int, topic_id: str | None) -> Start:
    """`topic_id`: of the topic as it is now."""
    spec = opened.spec
    made_by = lineage.definition(rebuilt)
    if opened.main.schema() is not None and made_by not in (None, definition(spec)):
        raise NeedsRebuild(
            f"{spec.name} was made with {made_by}, and the configuration now says {definition(spec)}: "
            f"change it back, or run `headrace table rebuild {spec.name}`"
        )
    known = _same_topic(lineage, opened.spec, rebuilt, topic_id)
    lineage.set_definition(rebuilt, definition(spec))
    step = last_step(opened.main)
    checkpoint = lineage.checkpoint(rebuilt)
    planned = checkpoint.planned()
    first_step = lineage.first_step(rebuilt)
    if planned is None or first_step is None:
        first_step = opened.last_of_all() + 1
        if opened.main.schema() is None and opened.empty_derived(first_step):
            first_step += 1
        lineage.set_first_step(rebuilt, first_step)
    elif (fresh := renumbered(first_step, planned, opened.last_of_all())) != first_step:
        first_step = fresh
        lineage.set_first_step(rebuilt, first_step)
    names = derived_definitions(spec)
    standing = Standing(
        step, {name: last_step(opened.open(name)) for name in names}, lineage.derived(), rebuilt
    )
    behind = opened.derive(to_derive(spec, standing), step)
    lineage.set_derived(without(names, behind))
    offsets = None if planned is not None else _offsets(lineage.begin(rebuilt), opened)
    return Start(rebuilt, known, first_step, offsets, behind)


def _same_topic(lineage: Lineage, spec: TableSpec, rebuilt: int, found: str | None) -> str | None:
    """The topic's id, noted at the first start. A lineage of before there were such notes takes it now."""
    known = lineage.topic_id(rebuilt)
    check_topic(spec, known, found)
    if known is None:
        lineage.set_topic_id(rebuilt, found)
    return known or found


def _offsets(begin: Offsets, opened: Opened) -> str | None:
    """Behind what is there. All up to a partition's largest offset was taken in, or is a dead letter.

    Dead letters do not tell how far the table is. They come before it: a driver that is killed in between
    leaves letters of a batch that the table has not. And they may be of a topic that was there before. To
    read some of them once more changes nothing.
    """
    if opened.main.schema() is None:
        return None
    following = _following(opened.main, opened.spec)
    if not begin and not following:
        return None
    topic = opened.spec.topic
    there = broker.partitions(opened.spark, opened.store.kafka, [topic])
    return offsets_json(starting(begin, following, there))


def _following(table: Table, spec: TableSpec) -> Offsets:
    """As many rows as there are partitions come to the driver."""
    rows = table.read().filter(sf.col(columns.TOPIC) == spec.topic)
    largest = rows.groupBy(columns.PARTITION).agg((sf.max(columns.OFFSET) + 1).alias("following"))
    return {(spec.topic, int(row[columns.PARTITION])): int(row["following"]) for row in largest.collect()}
