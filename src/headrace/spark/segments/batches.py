"""Blocks of records as the record batches that Spark takes: its times are in microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from headrace.arrow.columns import Wanted
from headrace.arrow.partition_reader import Block
from headrace.arrow.schema import schema_of, to_batch, wanted_by

_TIME: Final = pa.timestamp("us", tz="UTC")
_LARGEST: Final = (1 << 63) // 1000
"""Milliseconds that are microseconds of 64 bits still. What is beyond is in no calendar."""


def wanted(columns: Sequence[str]) -> Wanted:
    return wanted_by(schema_of(columns))


def batches(blocks: Iterable[Block], columns: Sequence[str]) -> Iterator[Any]:
    schema = schema_of(columns)
    for block in blocks:
        batch = to_batch(block, schema)
        if "timestamp" in columns:
            place = schema.get_field_index("timestamp")
            batch = batch.set_column(place, pa.field("timestamp", _TIME), _micros(batch.column(place)))
        yield batch


def _micros(times: Any) -> Any:
    try:
        return times.cast(_TIME)
    except pa.ArrowInvalid:
        numbers = [max(-_LARGEST, min(each, _LARGEST - 1)) for each in times.cast(pa.int64()).to_pylist()]
        return pa.array(numbers, pa.int64()).cast(times.type).cast(_TIME)
