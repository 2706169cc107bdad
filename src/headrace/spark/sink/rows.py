"""The columns that a frame may have, as in Spark's own Kafka sink, and their Arrow form."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.encoding import Columns, encode_headers
from headrace.spark.sink.varints import Integers

_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "value": (StringType, BinaryType),
    "key": (StringType, BinaryType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
    "timestamp": (TimestampType,),
}


def check_schema(schema: StructType, topic: str | None) -> None:
    """Raises SinkFailure with what to do."""
    names = schema.fieldNames()
    for field in schema.fields:
        allowed = _TYPES.get(field.name)
        if allowed is None:
            raise SinkFailure(
                f"the sink has no place for column {field.name!r}: select {', '.join(_TYPES)}, for example "
                f'.selectExpr("cast(id as string) as key", "to_json(struct(*)) as value")'
            )
        if not isinstance(field.dataType, allowed):
            wanted = " or ".join(each.typeName() for each in allowed)
            raise SinkFailure(
                f"column {field.name} is {wanted}, not {field.dataType.simpleString()}: cast it first"
            )
        if field.name == "headers":
            _check_headers(field.dataType)
    if "value" not in names:
        raise SinkFailure('there is no column "value": name the one that is to be written so')
    if topic is None and "topic" not in names:
        raise SinkFailure('say where the rows go: .option("topic", NAME), or a column "topic"')


def _check_headers(found: DataType) -> None:
    inner = found.elementType if isinstance(found, ArrayType) else None
    fields = inner.fields if isinstance(inner, StructType) else []
    if (
        len(fields) != 2
        or not isinstance(fields[0].dataType, StringType)
        or not isinstance(fields[1].dataType, BinaryType)
    ):
        raise SinkFailure(
            f"column headers is array<struct<key:string,value:binary>>, not {found.simpleString()}"
        )


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


def topics_of(table: Any, topic: str | None) -> tuple[list[str], Integers | None]:
    """The topics, and which of them each row goes to; None if there is only one."""
    if topic is not None:
        return [topic], None
    column = _one(table, "topic")
    if column.null_count:
        raise SinkFailure('a row has no topic: fill the column "topic", or give .option("topic", NAME)')
    encoded = column.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
