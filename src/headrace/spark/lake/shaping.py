"""A batch as the connector gives it, made into rows of a table and into dead letters. Nothing runs here."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from headrace.core.errors import HeadraceError
from headrace.spark import columns
from headrace.spark.decoding.columns import DECODED, PROBLEM
from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Format
from headrace.spark.decoding.shaping import shaped as in_shape_of
from headrace.spark.lake.plan import Route
from headrace.spark.lake.table_schema import Following, table_struct, table_type

REASON = "reason"
FAILED_AT = "failed_at"
_BAD = "__bad"


class ColumnTaken(HeadraceError):
    """A column that every table has is one of the values' own in this one."""


class Shaped(NamedTuple):
    """`judged` has what the table's columns are made from, and `problem`: null, or why a record stays out."""

    judged: DataFrame
    kept: StructType
    """Columns that stand beside the value's own."""
    typed: StructType | None = None
    """The value's own, as the table names them. None where it is not decoded: nothing can be wrong then."""
    decoded: StructType | None = None
    """The same fields, in the same order, as the decoder names them."""

    @property
    def incoming(self) -> StructType:
        return StructType([*self.kept.fields, *(self.typed.fields if self.typed is not None else [])])


def shape(frame: DataFrame, route: Route) -> Shaped:
    """The columns that this batch would like the table to have."""
    kept = _record_fields(frame)
    raw = StructField(columns.VALUE, frame.schema[columns.VALUE].dataType, True)
    if route.decoding.format is Format.BYTES:
        return Shaped(frame, StructType([*kept, raw]))
    decoded = decode(frame, route.decoding)
    if route.keep_value:
        kept.append(raw)
    found = decoded.schema[DECODED].dataType
    assert isinstance(found, StructType), "a decoded value is a struct"
    return Shaped(decoded, StructType(kept), table_struct(found, [field.name for field in kept]), found)


def _record_fields(frame: DataFrame) -> list[StructField]:
    return [
        StructField(name, table_type(frame.schema[name].dataType), True) for name in columns.RECORD_COLUMNS
    ]


def judge(shaped: Shaped, following: Following) -> DataFrame:
    """With what the table cannot take counted among the problems."""
    problem, values = sf.col(PROBLEM), value_columns(shaped)
    for conflict in following.conflicts:
        if conflict.column in shaped.kept.names:
            raise ColumnTaken(
                f"{conflict.reason}: the table cannot keep the records' own {conflict.column} beside it. "
                'Give the topic another table (table = "..."), or take back the change (keep_value, format)'
            )
        value = values[conflict.column]
        problem = sf.when(problem.isNull() & value.isNotNull(), conflict.reason).otherwise(problem)
    return shaped.judged.withColumn(PROBLEM, problem) if following.conflicts else shaped.judged


def value_columns(shaped: Shaped) -> dict[str, Column]:
    """The fields of the value, by the names of the table's columns."""
    found: dict[str, Column] = {}
    if shaped.typed is None or shaped.decoded is None:
        return found
    decoded, fields = sf.col(DECODED), shaped.decoded.fields
    if len({field.name.lower() for field in fields}) < len(fields):
        # Spark does not tell names apart that differ only in case. The table's differ in more.
        named = zip(shaped.typed.names, fields, strict=True)
        fields = [StructField(name, field.dataType) for name, field in named]
        decoded = decoded.cast(StructType(fields))
    for ours, theirs in zip(shaped.typed.fields, fields, strict=True):
        value = decoded[theirs.name]
        # Names further inside, if they differ. A cast of a struct goes by position, and costs a copy of each.
        same = ours.dataType.simpleString() == theirs.dataType.simpleString()
        found[ours.name] = value if same else value.cast(ours.dataType)
    return found


def good_rows(judged: DataFrame, shaped: Shaped, following: Following) -> DataFrame:
    rows = judged if shaped.typed is None else judged.filter(sf.col(PROBLEM).isNull())
    return rows.select(*table_columns(shaped, following))


def table_columns(shaped: Shaped, following: Following) -> list[Column]:
    """Exactly the table's columns, in the table's order."""
    clashing = {conflict.column for conflict in following.conflicts}
    found: dict[str, Column] = {}
    types = {field.name: field.dataType for field in following.schema.fields}
    for field in shaped.kept.fields:
        found[field.name] = in_shape_of(sf.col(field.name), field.dataType, types[field.name])
    values = value_columns(shaped)
    for field in shaped.typed.fields if shaped.typed is not None else []:
        if field.name not in clashing:
            found[field.name] = in_shape_of(values[field.name], field.dataType, types[field.name])
    return [
        (found[name] if name in found else sf.lit(None).cast(type_)).alias(name)
        for name, type_ in types.items()
    ]


def counted_rows(judged: DataFrame, shaped: Shaped, following: Following, observed: Observation) -> DataFrame:
    """The same, and `observed` gets to know how many there were, as `rows`, and how many others, as
    `problems`.

    Spark moves nothing past a count, so the columns are chosen before it: what passes by is no wider than a
    row of the table, and has no reason in it.
    """
    bad = sf.col(_BAD)
    chosen = judged.select(*table_columns(shaped, following), sf.col(PROBLEM).isNotNull().alias(_BAD))
    counts = (sf.count_if(~bad).alias("rows"), sf.count_if(bad).alias("problems"))
    return chosen.observe(observed, *counts).filter(~bad).drop(_BAD)


# --- dead letters -------------------------------------------------------------------------------------------


def dead_letter_schema(frame: DataFrame) -> StructType:
    return StructType(
        [
            *_record_fields(frame),
            StructField(columns.VALUE, frame.schema[columns.VALUE].dataType, True),
            StructField(REASON, StringType(), True),
            StructField(FAILED_AT, TimestampType(), True),
        ]
    )


def dead_letters(judged: DataFrame, otherwise: str | None = None) -> DataFrame:
    """Rows of the dead-letter table. With `otherwise` all of `judged` are, also those without a problem."""
    reason = sf.col(PROBLEM)
    if otherwise is None:
        judged = judged.filter(reason.isNotNull())
    elif PROBLEM in judged.columns:
        reason = sf.coalesce(reason, sf.lit(otherwise))
    else:
        reason = sf.lit(otherwise)
    schema = dead_letter_schema(judged)
    rows = judged.withColumns({REASON: reason, FAILED_AT: sf.current_timestamp()})
    return rows.select(
        *(in_shape_of(sf.col(f.name), rows.schema[f.name].dataType, f.dataType).alias(f.name) for f in schema)
    )
