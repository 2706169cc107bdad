"""Avro records of schemas that Spark's reader cannot be given.

A streaming frame is planned once and runs for months. A schema that is registered meanwhile cannot enter the
plan. And Spark would take the numbers of a schema with other scales and units for what they are not. Records
of both are translated in Python, where they are met, into the reader's schema; Spark then reads them as it
reads all others, which go there as nulls.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from headrace.spark.decoding import avro_schema
from headrace.spark.decoding.arrow_functions import arrow_column
from headrace.spark.decoding.formats import Format
from headrace.spark.decoding.registered import SchemaUnusable, met

RECORD: Final = "record"
PROBLEM: Final = "problem"
_ANSWER: Final = StructType([StructField(RECORD, BinaryType()), StructField(PROBLEM, StringType())])


def translated(value: Column, reader: Any, registry: str, known: Mapping[int, Any]) -> Column:
    """A struct of `record`, in the reader's schema and without header, and `problem`. Null for null.

    `known` are schemas by their ids; the registry is asked for others.
    """
    text = json.dumps(reader)

    def translate(values: pa.Array) -> pa.Array:
        key = (text, registry)
        if key not in _translators:
            _translators[key] = Translator(text, registry)
        return _translators[key].translate(values, known)

    return arrow_column(translate, value, _ANSWER)


class Translator:
    """From whichever schema wrote a record to the reader's. Needs no Spark."""

    def __init__(self, reader: str, registry: str) -> None:
        # Only where such a record can be: nobody else needs the library.
        import fastavro

        self._avro = fastavro
        self._reader = fastavro.parse_schema(_in_utc(json.loads(reader)))
        self._registry = registry
        self._writers: dict[int, Any] = {}

    def translate(self, values: pa.Array, known: Mapping[int, Any]) -> pa.Array:
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.struct([(RECORD, pa.binary()), (PROBLEM, pa.string())]))
        records: list[bytes | None] = []
        problems: list[str | None] = []
        for value in values.to_pylist():
            record, problem = (None, None) if value is None else self._one(value, known)
            records.append(record)
            problems.append(problem)
        arrays = [pa.array(records, pa.binary()), pa.array(problems, pa.string())]
        return pa.StructArray.from_arrays(arrays, [RECORD, PROBLEM], mask=values.is_null())

    def _one(self, value: bytes, known: Mapping[int, Any]) -> tuple[bytes | None, str | None]:
        number = int.from_bytes(value[1:5], "big")
        try:
            writer = self._writer(number, known)
        except SchemaUnusable as unusable:
            return None, str(unusable)
        out = io.BytesIO()
        try:
            record = self._avro.schemaless_reader(io.BytesIO(value[5:]), writer, self._reader)
            self._avro.schemaless_writer(out, self._reader, record)
        except Exception as error:
            # Bytes can make a decoder raise almost anything; whatever it is, the record is to blame.
            what = str(error) or type(error).__name__
            return None, f"the bytes are not a record of the Avro schema with id {number}: {what}"
        return out.getvalue(), None

    def _writer(self, number: int, known: Mapping[int, Any]) -> Any:
        if number not in self._writers:
            found = None if number in known else met(self._registry, number, Format.AVRO)
            try:
                document = (
                    known[number]
                    if found is None
                    else avro_schema.with_references(avro_schema.parse(found.text), found.references)
                )
                self._writers[number] = self._avro.parse_schema(_in_utc(document))
            except Exception as error:
                # Whoever can write to a registry can put there what this library does not take.
                raise SchemaUnusable(f"the Avro schema with id {number} cannot be used: {error}") from None
        return self._writers[number]


def _in_utc(schema: Any) -> Any:
    """With local times as those of UTC, which have the same numbers: the worker's clock stays out of it."""
    if isinstance(schema, list):
        return [_in_utc(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: _in_utc(each) for name, each in schema.items()}
    logical = found.get("logicalType")
    return {**found, "logicalType": logical.removeprefix("local-")} if isinstance(logical, str) else found


_translators: dict[tuple[str, str], Translator] = {}
