"""Spark computes the same hashes, windows and sums as a producer does."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from headrace.audit.checksum import record_hash
from headrace.audit.tally import Cell, Tally, window_of
from headrace.spark.audit import expressions

_LENGTH_MS = 60_000
_SCHEMA = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
Row = tuple[str, int, int, datetime, bytes | None, bytes | None]


def moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


def rows(count: int) -> tuple[list[Row], dict[Cell, Tally]]:
    """Of every length that XXH64 treats in another way, with and without key and value."""
    chance = random.Random(7)
    made: list[Row] = []
    expected: dict[Cell, Tally] = {}
    for number in range(count):
        timestamp = chance.choice([0, -1, 1_700_000_000_000 + chance.randrange(200_000)])
        key = None if number % 3 == 0 else chance.randbytes(number % 40)
        value = None if number % 7 == 0 else chance.randbytes(number % 131)
        made.append(("t", number % 3, number, moment(timestamp), key, value))
        cell = Cell("t", number % 3, window_of(timestamp, _LENGTH_MS))
        one = Tally(1, *record_hash(key, value, timestamp))
        expected[cell] = expected.get(cell, Tally()).plus(one)
    return made, expected


def test_tallies_are_those_of_the_producer(spark: SparkSession) -> None:
    made, expected = rows(700)
    frame = expressions.tallies_of_records(spark.createDataFrame(made, _SCHEMA), _LENGTH_MS)
    found = {
        Cell(r.topic, r.partition, r.window_ms): Tally.parse(r["count"], r.checksum) for r in frame.collect()
    }
    assert found == expected
    # Summed once more, as the parts of several passes are.
    again = expressions.summed(
        frame.union(frame).groupBy("topic", "partition", "window_ms").agg(*expressions.sum_of_tallies())
    )
    twice = {
        Cell(r.topic, r.partition, r.window_ms): Tally.parse(r["count"], r.checksum) for r in again.collect()
    }
    assert twice == {cell: tally.plus(tally) for cell, tally in expected.items()}


def test_a_table_that_keeps_the_hash_needs_no_value(spark: SparkSession) -> None:
    made, expected = rows(100)
    kept = expressions.with_hash(spark.createDataFrame(made, _SCHEMA)).drop("value", "key")
    found = expressions.tallies_of_records(kept, _LENGTH_MS).collect()
    assert {Cell(r.topic, r.partition, r.window_ms): r.checksum for r in found} == {
        cell: tally.checksum for cell, tally in expected.items()
    }
