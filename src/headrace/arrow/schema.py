"""The columns of a topic in Arrow's types, with the names that they have in Spark's source for Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from headrace.arrow.columns import Binary, Taken, Wanted
from headrace.arrow.partition_reader import Block
from headrace.client.errors import ClientFailure

_HEADER: Final = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("headers", pa.list_(pa.field("element", _HEADER, nullable=False)), nullable=False),
    ]
)


def schema_of(columns: Sequence[str] | None) -> Any:
    """Of these columns, in this order; of all of them for None."""
    if columns is None:
        return SCHEMA
    unknown = [name for name in columns if name not in SCHEMA.names]
    if unknown:
        raise ClientFailure(
            f"there is no column {', '.join(unknown)}", f"the columns are {', '.join(SCHEMA.names)}"
        )
    return pa.schema([SCHEMA.field(name) for name in columns])


def wanted_by(schema: Any) -> Wanted:
    return Wanted(*(name in schema.names for name in ("key", "value", "headers")))


def to_batch(block: Block, schema: Any) -> Any:
    """A RecordBatch of this schema, over the bytes of the block."""
    taken = Taken._make(block.taken)
    arrays = [_array(name, block, taken) for name in schema.names]
    if not arrays:  # only the number of rows is asked for, as by count(*)
        return pa.RecordBatch.from_struct_array(pa.array([{}] * taken.rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(name: str, block: Block, taken: Taken) -> Any:
    if name == "key":
        return _binary(taken.keys, taken.rows)
    if name == "value":
        return _binary(taken.values, taken.rows)
    if name == "topic":
        return pa.repeat(pa.scalar(block.partition.topic, pa.string()), taken.rows)
    if name == "partition":
        return pa.repeat(pa.scalar(block.partition.partition, pa.int32()), taken.rows)
    if name == "headers":
        return _headers(taken)
    content = {"offset": taken.offsets, "timestamp": taken.timestamps, "timestampType": taken.types}[name]
    return pa.Array.from_buffers(SCHEMA.field(name).type, taken.rows, [None, pa.py_buffer(content)])


def _binary(column: Binary | None, rows: int) -> Any:
    assert column is not None, "whoever wants a column asks for it"
    ends, data, valid = column
    buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _headers(taken: Taken) -> Any:
    assert taken.header_ends is not None
    assert taken.header_names is not None
    count = len(memoryview(taken.header_names[0])) // 4 - 1
    names = _text(_binary(taken.header_names, count))
    values = _binary(taken.header_values, count)
    pairs = pa.StructArray.from_arrays([names, values], fields=list(_HEADER))
    kind = SCHEMA.field("headers").type
    ends = pa.py_buffer(taken.header_ends)
    return pa.Array.from_buffers(kind, taken.rows, [None, ends], children=[pairs])


def _text(names: Any) -> Any:
    """Names of headers are UTF-8, unless a client wrote something else: then as Java reads it."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())
