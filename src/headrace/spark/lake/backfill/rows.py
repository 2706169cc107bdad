"""Records as Arrow has them, made into rows of a table that is not decoded: the columns, their order and
their types as Spark writes what the connector reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark import columns

COLUMNS: Final = (*columns.RECORD_COLUMNS, columns.VALUE)
_NUMBER: Final = b"PARQUET:field_id"


def schema(names: Sequence[str], field_ids: Mapping[str, int]) -> Any:
    """Of a file, with these columns in this order. Everything may be null, as in any table of the lake."""

    def field(path: str, kind: Any) -> Any:
        number = field_ids.get(path)
        metadata = None if number is None else {_NUMBER: b"%d" % number}
        return pa.field(path.rpartition(".")[2], kind, True, metadata)

    header = "headers.list.element"
    pair = pa.struct([field(f"{header}.key", pa.string()), field(f"{header}.value", pa.binary())])
    kinds = {
        columns.TOPIC: pa.string(),
        columns.PARTITION: pa.int32(),
        columns.OFFSET: pa.int64(),
        # Iceberg has microseconds only.
        columns.TIMESTAMP: pa.timestamp("us", "UTC"),
        columns.KEY: pa.binary(),
        columns.HEADERS: pa.list_(field(header, pair)),
        columns.VALUE: pa.binary(),
    }
    return pa.schema([field(name, kinds[name]) for name in names])


def to_rows(batch: Any, wanted: Any) -> Any:
    """A batch as `headrace.arrow` gives it, with the columns of `wanted`."""
    arrays = []
    for field in wanted:
        array = batch.column(field.name)
        if field.name == columns.TIMESTAMP:
            array = array.cast(field.type)
        elif field.name == columns.HEADERS:
            array = _headers(array, field.type)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _headers(array: Any, kind: Any) -> Any:
    """Null where there are none, as the connector has it."""
    values = array.values
    pair = kind.value_type
    pairs = pa.StructArray.from_arrays([values.field(0), values.field(1)], fields=list(pair))
    valid = pc.greater(pc.list_value_length(array), 0)
    buffers = [valid.buffers()[1], array.buffers()[1]]
    return pa.Array.from_buffers(kind, len(array), buffers, children=[pairs])
