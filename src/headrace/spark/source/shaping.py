"""A frame as the connector gives it, with the record's own columns first and the value's own behind them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from headrace.spark import columns
from headrace.spark.decoding.columns import DECODED, PROBLEM
from headrace.spark.decoding.decode import decode
from headrace.spark.decoding.formats import Decoding, Format
from headrace.spark.lake.table_schema import table_names
from headrace.spark.source.options import Undecodable


def shape(
    frame: DataFrame, decoding: Decoding | None, *, undecodable: Undecodable, keep_value: bool
) -> DataFrame:
    """Fields are named as the lake names them: one that is called like a column before it gets `value_`.

    A record without headers has an empty list of them. The connector gives null, for which Spark's way to
    Arrow takes a time that grows with the square of a batch.
    """
    none = sf.array().cast(frame.schema[columns.HEADERS].dataType)
    frame = frame.withColumn(columns.HEADERS, sf.coalesce(sf.col(columns.HEADERS), none))
    if decoding is None or decoding.format is Format.BYTES:
        return frame.select(*columns.RECORD_COLUMNS, columns.VALUE)
    kept = [*columns.RECORD_COLUMNS, *([columns.VALUE] if keep_value else [])]
    added = [PROBLEM] if undecodable == "keep" else []
    decoded = decode(frame, decoding)
    if undecodable == "drop":
        decoded = decoded.filter(sf.col(PROBLEM).isNull())
    elif undecodable == "fail":
        # A filter, because Spark leaves out a column that nobody asks for.
        decoded = decoded.filter(_raises())
    fields = decoded.schema[DECODED].dataType
    assert isinstance(fields, StructType), "a decoded value is a struct"
    typed = [
        sf.col(DECODED)[field].alias(name)
        for field, name in zip(fields.names, table_names(fields.names, [*kept, *added]), strict=True)
    ]
    return decoded.select(*kept, *typed, *added)


def _raises() -> Column:
    """True for every record that was decoded; the others end the query."""
    place = sf.format_string(
        "%s, partition %d, offset %d cannot be decoded: %s. To go on without such records, say "
        'undecodable="keep" (a row with its problem) or undecodable="drop"',
        columns.TOPIC,
        columns.PARTITION,
        columns.OFFSET,
        PROBLEM,
    )
    return sf.when(sf.col(PROBLEM).isNull(), sf.lit(True)).otherwise(sf.raise_error(place).cast("boolean"))
