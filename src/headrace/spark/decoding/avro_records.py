"""Avro by Spark's own reader: each record with the schema that wrote it, all into the columns of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from headrace.spark.decoding import avro_strangers, wire_format
from headrace.spark.decoding.avro_meaning import means_the_same
from headrace.spark.decoding.avro_schema import MARKER, as_record, marked, name_of, twins
from headrace.spark.decoding.columns import KEPT, PARSED, with_columns
from headrace.spark.decoding.formats import DecodingRefused

_STRANGER: Final = "__stranger"


@dataclass(frozen=True)
class Writers:
    """What a registry lists: schemas by their ids. `subjects` are where, for people."""

    registry: str = field(repr=False)
    subjects: str
    schemas: Mapping[int, Any] = field(repr=False)


def decode_avro(frame: DataFrame, reader: Any, value: Column, writers: Writers | None = None) -> DataFrame:
    """Without writers, every record is written with the reader's schema and has no header."""
    _check_names(frame, reader)
    if writers is None:
        parsed = from_avro(value, json.dumps(as_record(reader)), _options(reader))
        fault: Column = sf.lit(f"the bytes are not a record of the Avro schema {name_of(reader)}")
        return _finished(frame, value, parsed, fault)
    # Spark would take the numbers of these for what they are not.
    apart = {
        number: schema for number, schema in writers.schemas.items() if not means_the_same(reader, schema)
    }
    alike = {number: schema for number, schema in writers.schemas.items() if number not in apart}
    parsed = _by_writer(reader, value, alike)
    number = wire_format.schema_id(value)
    header = wire_format.problem(value)
    faults = [
        sf.concat(
            sf.lit("the bytes are not a record of the Avro schema with id "), number,
            sf.lit(f", or it cannot be read as {name_of(reader)} is now"),
        )
    ]  # fmt: skip
    if frame.isStreaming:
        # The plan of a stream is made once: what is registered later is not in it.
        strange = header.isNull() & ~wire_format.is_listed(value, alike)
    else:
        unlisted = header.isNull() & ~wire_format.is_listed(value, writers.schemas)
        where = sf.lit(f" is not registered under {writers.subjects}")
        faults.insert(0, sf.when(unlisted, sf.concat(sf.lit("schema id "), number, where)))
        if not apart:
            return _finished(frame, value, parsed, sf.coalesce(header, *faults))
        strange = wire_format.is_listed(value, apart)
    translated = avro_strangers.translated(sf.when(strange, value), reader, writers.registry, apart)
    stranger = sf.col(_STRANGER)
    late = from_avro(stranger[avro_strangers.RECORD], json.dumps(as_record(reader)), _options(reader))
    fault = sf.coalesce(header, stranger[avro_strangers.PROBLEM], *faults)
    whole = frame.withColumn(_STRANGER, translated)
    return _finished(whole, value, parsed.otherwise(late), fault).drop(_STRANGER)


def _check_names(frame: DataFrame, reader: Any) -> None:
    """Spark's reader would refuse each record, and not say why."""
    found = twins(reader)
    if found is not None and frame.sparkSession.conf.get("spark.sql.caseSensitive") != "true":
        raise DecodingRefused(
            f"the fields {found[0]} and {found[1]} of the Avro schema {name_of(reader)} differ only in case, "
            "and Spark's reader does not tell them apart unless spark.sql.caseSensitive is true"
        )


def _finished(frame: DataFrame, value: Column, parsed: Column, fault: Column) -> DataFrame:
    """`fault` is looked for only where the reader refused, so a good record does not pay for it."""
    good = sf.col(PARSED)[MARKER].isNotNull()
    return with_columns(
        frame,
        value=value,
        parsed=parsed,
        good=good,
        decoded=sf.col(KEPT).dropFields(MARKER),
        reason=sf.coalesce(fault, sf.lit("the bytes are not a record of this Avro schema")),
    )


def _options(reader: Any) -> dict[str, str]:
    return {"mode": "PERMISSIVE", "avroSchema": json.dumps(marked(as_record(reader)))}


def _by_writer(reader: Any, value: Column, schemas: Mapping[int, Any]) -> Column:
    record, options = wire_format.record(value), _options(reader)
    branches: Column | None = None
    for number, schema in schemas.items():
        condition = wire_format.has_id(value, number)
        outcome = from_avro(record, json.dumps(as_record(schema)), options)
        branches = sf.when(condition, outcome) if branches is None else branches.when(condition, outcome)
    assert branches is not None, "the reader's own schema is among them"
    return branches
