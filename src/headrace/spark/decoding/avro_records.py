"""Avro by Spark's own reader: each record with the schema that wrote it, all into the columns of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from headrace.spark.decoding import wire_format
from headrace.spark.decoding.avro_schema import MARKER, is_record, marked, may_be_null, name_of
from headrace.spark.decoding.columns import PARSED, with_columns


@dataclass(frozen=True)
class AvroSchemas:
    """`writers` by their ids in the registry, or None where records are written with the reader's schema."""

    reader: Any
    writers: Mapping[int, Any] | None = None
    subject: str = ""


def decode_avro(frame: DataFrame, schemas: AvroSchemas, value: Column) -> DataFrame:
    answer = sf.col(PARSED)
    parsed = _parsed(schemas, value)
    refused = _refused(frame, schemas, parsed, answer)
    problem = sf.when(value.isNull(), None)
    if schemas.writers is None:
        fault: Column = sf.lit(f"the bytes are not a record of the Avro schema {name_of(schemas.reader)}")
    else:
        number = wire_format.schema_id(value)
        unlisted = sf.concat(
            sf.lit("schema id "), number, sf.lit(f" is not registered under {schemas.subject}")
        )
        header = wire_format.problem(value)
        problem = problem.when(header.isNotNull(), header)
        problem = problem.when(~wire_format.is_listed(value, schemas.writers), unlisted)
        fault = sf.concat(
            sf.lit("the bytes are not a record of the Avro schema with id "), number,
            sf.lit(f", or it cannot be read as {name_of(schemas.reader)} is now"),
        )  # fmt: skip
    problem = problem.when(refused, fault)
    decoded = answer.dropFields(MARKER) if is_record(schemas.reader) else sf.struct(answer.alias("value"))
    return with_columns(frame, parsed=parsed, problem=problem, decoded=sf.when(value.isNotNull(), decoded))


def _parsed(schemas: AvroSchemas, value: Column) -> Column:
    reader = json.dumps(marked(schemas.reader) if is_record(schemas.reader) else schemas.reader)
    options = {"mode": "PERMISSIVE", "avroSchema": reader}
    if schemas.writers is None:
        return from_avro(value, json.dumps(schemas.reader), options)
    record = wire_format.record(value)
    branches: Column | None = None
    for number, schema in schemas.writers.items():
        condition, outcome = wire_format.has_id(value, number), from_avro(record, json.dumps(schema), options)
        branches = sf.when(condition, outcome) if branches is None else branches.when(condition, outcome)
    assert branches is not None, "a subject has at least one version"
    return branches


def _refused(frame: DataFrame, schemas: AvroSchemas, parsed: Column, answer: Column) -> Column:
    """How Spark's reader says that it could not read a record."""
    if is_record(schemas.reader):
        return answer[MARKER].isNull()
    if may_be_null(schemas.reader):
        return sf.lit(False)
    type_ = frame.select(parsed.alias(PARSED)).schema[PARSED].dataType
    if isinstance(type_, StructType):  # a union: one column for each kind, of which one is filled
        return sf.coalesce(*(answer[name].isNotNull() for name in type_.names)).isNull()
    return answer.isNull()
