"""Avro records of schemas that were not known when a query was planned.

A streaming frame is planned once and runs for months. A schema that is registered meanwhile cannot enter the
plan, so its records are translated in Python, where they are met, into the reader's schema; Spark then reads
them as it reads all others. Records of known schemas go there as nulls.
"""

from __future__ import annotations

import io
import json
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from headrace.spark.decoding import avro_schema
from headrace.spark.decoding.arrow_functions import arrow_column
from headrace.spark.decoding.registry_client import client

RECORD: Final = "record"
PROBLEM: Final = "problem"
_ANSWER: Final = StructType([StructField(RECORD, BinaryType()), StructField(PROBLEM, StringType())])


def translated(value: Column, reader: Any, registry: str) -> Column:
    """A struct of `record`, in the reader's schema and without header, and `problem`. Null for null."""
    text = json.dumps(reader)

    def translate(values: pa.Array) -> pa.Array:
        key = (text, registry)
        if key not in _translators:
            _translators[key] = Translator(text, registry)
        return _translators[key].translate(values)

    return arrow_column(translate, value, _ANSWER)


class Translator:
    """From whichever schema wrote a record to the reader's. Needs no Spark."""

    def __init__(self, reader: str, registry: str) -> None:
        # Only where such a record can be: nobody else needs the library.
        import fastavro

        self._avro = fastavro
        self._reader = fastavro.parse_schema(json.loads(reader))
        self._registry = registry
        self._writers: dict[int, Any] = {}

    def translate(self, values: pa.Array) -> pa.Array:
        if values.null_count == len(values):
            return pa.nulls(len(values), pa.struct([(RECORD, pa.binary()), (PROBLEM, pa.string())]))
        records: list[bytes | None] = []
        problems: list[str | None] = []
        for value in values.to_pylist():
            record, problem = (None, None) if value is None else self._one(value)
            records.append(record)
            problems.append(problem)
        arrays = [pa.array(records, pa.binary()), pa.array(problems, pa.string())]
        return pa.StructArray.from_arrays(arrays, [RECORD, PROBLEM], mask=values.is_null())

    def _one(self, value: bytes) -> tuple[bytes | None, str | None]:
        number = int.from_bytes(value[1:5], "big")
        if number not in self._writers:
            found = client(self._registry).by_id(number)
            if found is None:
                return None, f"schema id {number} is not known to the registry"
            if found.type != "AVRO":
                return None, f"schema id {number} is of type {found.type}, not AVRO"
            document = avro_schema.with_references(avro_schema.parse(found.text), found.references)
            self._writers[number] = self._avro.parse_schema(document)
        out = io.BytesIO()
        try:
            record = self._avro.schemaless_reader(io.BytesIO(value[5:]), self._writers[number], self._reader)
            self._avro.schemaless_writer(out, self._reader, record)
        except Exception as error:
            # Bytes can make a decoder raise almost anything; whatever it is, the record is to blame.
            what = str(error) or type(error).__name__
            return None, f"the bytes are not a record of the Avro schema with id {number}: {what}"
        return out.getvalue(), None


_translators: dict[tuple[str, str], Translator] = {}
