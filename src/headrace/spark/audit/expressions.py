"""The checksum of `headrace.audit.checksum` as Spark expressions: compiled by Spark, no row reaches Python.

A sum of 64-bit numbers would overflow, which Spark takes for an error. So each lane is summed in two halves
of 32 bits, and the carry is brought over at the end. Sums of up to 2^31 records are exact.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it

from headrace.spark import columns

RECORD_HASH: Final = "record_hash"
"""A column for tables that do not keep the value: what lane a and b were when the record was read."""

_LOW: Final = 0xFFFF_FFFF
_HALVES: Final = ("a_high", "a_low", "b_high", "b_low")


def record_hash(
    key: str = columns.KEY, value: str = columns.VALUE, timestamp: str = columns.TIMESTAMP
) -> Column:
    """struct<a, b>; equal to `headrace.audit.checksum.record_hash`, with the lanes as signed numbers."""
    content = (F.isnull(key), F.col(key), F.col(value))
    a = F.xxhash64(*content)
    b = F.xxhash64(F.lit(1), *content).bitwiseXOR(F.unix_millis(timestamp))
    return F.struct(a.alias("a"), b.alias("b"))


def window(length_ms: int, timestamp: str = columns.TIMESTAMP) -> Column:
    """The first millisecond of the record's window; equal to `headrace.audit.tally.window_of`."""
    moment = F.unix_millis(timestamp)
    return moment - F.pmod(moment, F.lit(length_ms))


def with_hash(frame: DataFrame) -> DataFrame:
    """`frame` with the column `record_hash`, made from key, value and timestamp if it is not there."""
    if RECORD_HASH in frame.columns:
        return frame
    return frame.withColumn(RECORD_HASH, record_hash())


def tallies_of_records(frame: DataFrame, length_ms: int) -> DataFrame:
    """topic, partition, window_ms, count, checksum, last_offset of the records in `frame`."""
    keyed = with_hash(frame).select(
        columns.TOPIC,
        columns.PARTITION,
        window(length_ms).alias("window_ms"),
        columns.OFFSET,
        F.shiftrightunsigned(f"{RECORD_HASH}.a", 32).alias("a_high"),
        F.col(f"{RECORD_HASH}.a").bitwiseAND(F.lit(_LOW)).alias("a_low"),
        F.shiftrightunsigned(f"{RECORD_HASH}.b", 32).alias("b_high"),
        F.col(f"{RECORD_HASH}.b").bitwiseAND(F.lit(_LOW)).alias("b_low"),
    )
    grouped = keyed.groupBy(columns.TOPIC, columns.PARTITION, "window_ms").agg(
        F.count("*").alias("count"),
        *(F.sum(half).alias(half) for half in _HALVES),
        F.max(columns.OFFSET).alias("last_offset"),
    )
    return grouped.withColumn("checksum", _joined()).drop(*_HALVES)


def sum_of_tallies(*more: Column) -> list[Column]:
    """For `agg` over rows with count and checksum: their sums, under the same names."""
    halves = [
        F.sum(F.conv(F.substring("checksum", 1 + 8 * at, 8), 16, 10).cast("bigint")).alias(half)
        for at, half in enumerate(_HALVES)
    ]
    return [F.sum("count").alias("count"), *halves, *more]


def summed(grouped: DataFrame) -> DataFrame:
    """After `agg(*sum_of_tallies())`: the checksum put together."""
    return grouped.withColumn("checksum", _joined()).drop(*_HALVES)


def _joined() -> Column:
    return F.concat(*_lane("a"), *_lane("b"))


def _lane(name: str) -> tuple[Column, Column]:
    low = F.col(f"{name}_low")
    high = F.col(f"{name}_high") + F.shiftright(low, 32)
    return _digits(high), _digits(low)


def _digits(number: Column) -> Column:
    return F.lower(F.lpad(F.hex(number.bitwiseAND(F.lit(_LOW))), 8, "0"))
