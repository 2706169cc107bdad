"""What a batch changes: its last readable record of each key. Nothing runs here."""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import MapType, StructField, StructType

from headrace.core.errors import HeadraceError
from headrace.spark import columns
from headrace.spark.decoding.columns import PROBLEM
from headrace.spark.lake import shaping
from headrace.spark.lake.plan import Route
from headrace.spark.lake.shaping import Shaped
from headrace.spark.lake.table_schema import Following, table_struct
from headrace.spark.table.computing import attempted
from headrace.spark.table.config import Order, TableSpec
from headrace.spark.table.keys import KEY_PROBLEM, RAW_KEY, field_problem, with_key

#: Whether the last record of a key says that the key is gone.
DELETED: Final = "__headrace_deleted"
#: Whether the row stands for records of its key that cannot be read.
BAD: Final = "__headrace_bad"
_RECORD: Final = "__headrace_record"
#: They stand beside the table's columns on the way there.
_OURS: Final = (DELETED, BAD, _RECORD)


class NoSuchColumn(HeadraceError):
    """Says which there are."""


class Judged(NamedTuple):
    """A batch with `problem` for each record: null, or why the table cannot have it."""

    frame: DataFrame
    shaped: Shaped
    following: Following


def shape(frame: DataFrame, spec: TableSpec, route: Route) -> Shaped:
    shaped = _clear_of_ours(shaping.shape(with_key(frame, spec), route))
    _check_key(spec, shaped.incoming)
    return shaped


def _clear_of_ours(shaped: Shaped) -> Shaped:
    """A field that is called like one of ours is named like one that is called as a record's own column."""
    if shaped.decoded is None:
        return shaped
    return shaped._replace(typed=table_struct(shaped.decoded, [*shaped.kept.names, *_OURS]))


def _check_key(spec: TableSpec, incoming: StructType) -> None:
    for name in spec.key_columns:
        column = field_of(incoming, name, spec.name)
        if isinstance(column.dataType, MapType):
            raise NoSuchColumn(f"{spec.name}: {name} is a map, which cannot be a key: maps do not compare")


def field_of(schema: StructType, name: str, table: str) -> StructField:
    for field in schema.fields:
        if field.name == name:
            return field
    raise NoSuchColumn(f"{table} has no column {name}; it has {', '.join(schema.names)}")


def judge(shaped: Shaped, following: Following, spec: TableSpec) -> Judged:
    frame = shaping.judge(shaped, following)
    if spec.deleted is not None:
        frame = _with_deleted(frame, shaped, following, spec.deleted)
    problems = [sf.col(KEY_PROBLEM)]
    if shaped.typed is not None:
        problems.append(sf.col(PROBLEM))
    lacking = field_problem(spec, shaping.value_columns(shaped))
    if lacking is not None:
        problems.append(lacking)
    if spec.deleted is not None:
        problems.append(sf.when(sf.col(DELETED).isNull(), _not_computed(spec.deleted)))
    return Judged(frame.withColumn(PROBLEM, sf.coalesce(*problems)), shaped, following)


def _with_deleted(frame: DataFrame, shaped: Shaped, following: Following, condition: str) -> DataFrame:
    """DELETED beside the record: null where `condition` cannot be computed from the table's columns.

    These stand beside the record for so long, since a field may be called like something that is there.
    """
    beside = frame.select(sf.struct(*frame.columns).alias(_RECORD), *shaping.table_columns(shaped, following))
    said = sf.coalesce(sf.expr(condition).cast("boolean"), sf.lit(False))
    # Within a branch: Spark would compute what stands in it twice before it, where nothing is attempted.
    present = sf.col(_RECORD)[columns.VALUE].isNotNull()
    found = sf.when(present, attempted(said, frame.sparkSession)).otherwise(True)
    return beside.select(f"{_RECORD}.*", found.alias(DELETED))


def _not_computed(condition: str) -> str:
    return f"deleted = {condition!r} cannot be computed for it; try_cast and its like give null instead"


def last_of_each_key(judged: Judged, spec: TableSpec) -> DataFrame:
    """The table's columns, DELETED and BAD: one row for each key of readable records, one of others.

    So one pass over the batch tells both what to do and whether there are dead letters.
    """
    tombstone = sf.col(columns.VALUE).isNull()
    rows = judged.frame.select(
        *shaping.table_columns(judged.shaped, judged.following),
        (tombstone if spec.deleted is None else sf.col(DELETED)).alias(DELETED),
        sf.col(PROBLEM).isNotNull().alias(BAD),
    )
    names = [name for name in rows.columns if name != BAD]
    keys = [sf.col(name).alias(f"__key_{number}") for number, name in enumerate(spec.key_columns)]
    last = sf.max_by(sf.struct(*names), place(spec.order))
    return rows.groupBy(BAD, *keys).agg(last.alias("last")).select(BAD, "last.*")


def place(order: Order, table: str | None = None) -> Column:
    """What grows from record to record of a key."""
    return sf.expr(place_sql(order, table))


def place_sql(order: Order, table: str | None = None) -> str:
    names = [columns.PARTITION, columns.OFFSET]
    if order is Order.TIMESTAMP:
        names.insert(0, columns.TIMESTAMP)
    return f"struct({', '.join(f'{table}.{name}' if table else name for name in names)})"


def good(last: DataFrame) -> DataFrame:
    return last.filter(~sf.col(BAD)).drop(BAD)


def dead_letters(judged: Judged) -> DataFrame:
    """With the key as it came."""
    return shaping.dead_letters(judged.frame.withColumn(columns.KEY, sf.col(RAW_KEY)))


def readable(judged: Judged) -> DataFrame:
    """Where the records are that the table can have."""
    return judged.frame.filter(sf.col(PROBLEM).isNull()).select(*columns.IDENTITY)


class Counts(NamedTuple):
    """Keys, not records: of several records of one key in a batch the last counts."""

    upserts: int
    deletes: int
    bad: int


def count(last: DataFrame) -> Counts:
    row = last.agg(
        sf.count_if(~sf.col(BAD) & ~sf.col(DELETED)).alias("upserts"),
        sf.count_if(~sf.col(BAD) & sf.col(DELETED)).alias("deletes"),
        sf.count_if(sf.col(BAD)).alias("bad"),
    ).first()
    assert row is not None, "an aggregate without groups has one row"
    return Counts(int(row["upserts"]), int(row["deletes"]), int(row["bad"]))
