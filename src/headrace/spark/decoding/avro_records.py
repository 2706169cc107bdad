"""Avro by Spark's own reader: each record with the schema that wrote it, all into the columns of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from headrace.spark.decoding import avro_strangers, wire_format
from headrace.spark.decoding.avro_schema import MARKER, is_record, marked, may_be_null, name_of
from headrace.spark.decoding.columns import PARSED, with_columns

_STRANGER: Final = "__stranger"


@dataclass(frozen=True)
class Writers:
    """What a registry lists: schemas by their ids. `subjects` are where, for people."""

    registry: str
    subjects: str
    schemas: Mapping[int, Any] = field(repr=False)


def decode_avro(frame: DataFrame, reader: Any, value: Column, writers: Writers | None = None) -> DataFrame:
    """Without writers, every record is written with the reader's schema and has no header."""
    if writers is None:
        parsed = from_avro(value, json.dumps(reader), _options(reader))
        fault: Column = sf.lit(f"the bytes are not a record of the Avro schema {name_of(reader)}")
        return _finished(frame, reader, value, parsed, fault, sf.when(value.isNull(), None))
    parsed = _by_writer(reader, value, writers)
    number = wire_format.schema_id(value)
    fault = sf.concat(
        sf.lit("the bytes are not a record of the Avro schema with id "), number,
        sf.lit(f", or it cannot be read as {name_of(reader)} is now"),
    )  # fmt: skip
    header = wire_format.problem(value)
    problem = sf.when(value.isNull(), None).when(header.isNotNull(), header)
    unlisted = header.isNull() & ~wire_format.is_listed(value, writers.schemas)
    if not frame.isStreaming:
        where = sf.lit(f" is not registered under {writers.subjects}")
        problem = problem.when(unlisted, sf.concat(sf.lit("schema id "), number, where))
        return _finished(frame, reader, value, parsed, fault, problem)
    # The plan of a stream is made once: what is registered later is not in it.
    stranger = sf.col(_STRANGER)
    with_strangers = frame.withColumn(
        _STRANGER, avro_strangers.translated(sf.when(unlisted, value), reader, writers.registry)
    )
    late = from_avro(stranger[avro_strangers.RECORD], json.dumps(reader), _options(reader))
    problem = problem.when(stranger[avro_strangers.PROBLEM].isNotNull(), stranger[avro_strangers.PROBLEM])
    return _finished(with_strangers, reader, value, parsed.otherwise(late), fault, problem).drop(_STRANGER)


def _finished(
    frame: DataFrame, reader: Any, value: Column, parsed: Column, fault: Column, problem: Column
) -> DataFrame:
    answer = sf.col(PARSED)
    problem = problem.when(_refused(frame, reader, parsed, answer), fault)
    decoded = answer.dropFields(MARKER) if is_record(reader) else sf.struct(answer.alias("value"))
    return with_columns(frame, parsed=parsed, problem=problem, decoded=sf.when(value.isNotNull(), decoded))


def _options(reader: Any) -> dict[str, str]:
    return {"mode": "PERMISSIVE", "avroSchema": json.dumps(marked(reader) if is_record(reader) else reader)}


def _by_writer(reader: Any, value: Column, writers: Writers) -> Column:
    record, options = wire_format.record(value), _options(reader)
    branches: Column | None = None
    for number, schema in writers.schemas.items():
        condition, outcome = wire_format.has_id(value, number), from_avro(record, json.dumps(schema), options)
        branches = sf.when(condition, outcome) if branches is None else branches.when(condition, outcome)
    assert branches is not None, "a subject has at least one version"
    return branches


def _refused(frame: DataFrame, reader: Any, parsed: Column, answer: Column) -> Column:
    """How Spark's reader says that it could not read a record."""
    if is_record(reader):
        return answer[MARKER].isNull()
    if may_be_null(reader):
        return sf.lit(False)
    type_ = frame.select(parsed.alias(PARSED)).schema[PARSED].dataType
    if isinstance(type_, StructType):  # a union: one column for each kind, of which one is filled
        return sf.coalesce(*(answer[name].isNotNull() for name in type_.names)).isNull()
    return answer.isNull()
