"""Conditions on where a record came from."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.spark import columns
from headrace.spark.lake.checkpoint import Range
from headrace.spark.lake.table_schema import quoted


def same_record(left: str, right: str) -> str:
    """A condition for SQL: topic, partition and offset name a record for good."""
    return " AND ".join(f"{left}.{quoted(name)} = {right}.{quoted(name)}" for name in columns.IDENTITY)


def within(ranges: Iterable[Range]) -> str:
    """A condition that the statistics of most files answer."""
    return " OR ".join(
        f"({quoted(columns.TOPIC)} = '{each.topic}' AND {quoted(columns.PARTITION)} = {each.partition} AND "
        f"{quoted(columns.OFFSET)} >= {each.first} AND {quoted(columns.OFFSET)} < {each.end})"
        for each in ranges
    )
