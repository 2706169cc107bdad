"""The columns of `schema.py`, from Arrow's form into what is encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.encoding import Columns, encode_headers
from headrace.spark.sink.varints import Integers


def columns_of(table: Any) -> Columns:
    """Of a pyarrow Table with the columns above."""
    names = table.column_names
    return Columns(
        _binary(table, "value"),
        _binary(table, "key") if "key" in names else None,
        encode_headers(_one(table, "headers")) if "headers" in names else None,
        _times(_one(table, "timestamp")) if "timestamp" in names else None,
    )


def _one(table: Any, name: str) -> Any:
    column = table.column(name)
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _binary(table: Any, name: str) -> Any:
    column = _one(table, name)
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _times(column: Any) -> Integers:
    """Milliseconds; a row without a time is an error, as Kafka has no record without one."""
    if column.null_count:
        raise SinkFailure("a row has no timestamp: fill the column, or leave it out to get the present time")
    millis: Integers = (
        pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64()).to_numpy()
    )
    return millis


def partitions_of(table: Any) -> Integers | None:
    """-1 where a row names none."""
    if "partition" not in table.column_names:
        return None
    found: Integers = pc.fill_null(_one(table, "partition"), -1).to_numpy().astype(np.int64)
    return found


def source_offsets_of(table: Any) -> Integers | None:
    if "source_offset" not in table.column_names:
        return None
    found: Integers = _one(table, "source_offset").to_numpy()
    return found


def topics_of(table: Any, topic: str | None) -> tuple[list[str], Integers | None]:
    """The topics, and which of them each row goes to; None if there is only one."""
    if topic is not None:
        return [topic], None
    column = _one(table, "topic")
    if column.null_count:
        raise SinkFailure('a row has no topic: fill the column "topic", or give .option("topic", NAME)')
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
