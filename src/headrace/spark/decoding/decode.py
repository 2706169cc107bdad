"""Typed columns for a frame as the Kafka connector gives it."""

from __future__ import annotations

from contextlib import suppress

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StringType, StructType

from headrace.spark.decoding.columns import DECODED, PROBLEM
from headrace.spark.decoding.formats import Decoding, DecodingRefused, Format
from headrace.spark.decoding.json_records import decode_json


def decode(frame: DataFrame, decoding: Decoding, column: str = "value") -> DataFrame:
    """The frame with two columns more: `decoded` (a struct or null) and `problem` (the reason or null).

    No record stops a query: what cannot be decoded has a problem and no `decoded`. A null value has neither.
    """
    value = sf.col(column)
    if decoding.format is Format.BYTES:
        kept = sf.when(value.isNotNull(), sf.struct(value.alias("value")))
        return frame.withColumns({DECODED: kept, PROBLEM: sf.lit(None).cast(StringType())})
    if decoding.format is Format.JSON:
        return decode_json(frame, _json_columns(decoding), *_text(value))
    raise DecodingRefused(f"{decoding.format} cannot be decoded yet")


def _text(value: Column) -> tuple[Column, Column]:
    text = value.cast(StringType())
    return text, sf.when(~sf.is_valid_utf8(text), "not JSON: the bytes are not UTF-8")


def _json_columns(decoding: Decoding) -> StructType:
    schema = decoding.schema
    if isinstance(schema, StructType):
        return schema
    parsed: DataType | None = None
    if isinstance(schema, str):
        with suppress(ParseException):
            parsed = StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        raise DecodingRefused(
            f"the schema of JSON is a StructType or its DDL, such as 'id bigint, name string', not {schema!r}"
        )
    return parsed
