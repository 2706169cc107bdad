"""The columns that a frame may have, as in Spark's own Kafka sink."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from headrace.spark.sink.decision import SinkFailure

_TYPES: Final[dict[str, tuple[type[DataType], ...]]] = {
    "value": (StringType, BinaryType),
    "key": (StringType, BinaryType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
    "timestamp": (TimestampType,),
}


_SOURCE_OFFSET: Final[dict[str, tuple[type[DataType], ...]]] = {"source_offset": (LongType,)}
"""Of a frame whose tasks are to tell where its rows landed (`job.py`)."""


def check_schema(schema: StructType, topic: str | None, *, of_job: bool = False) -> None:
    """Raises SinkFailure with what to do."""
    types = _TYPES | _SOURCE_OFFSET if of_job else _TYPES
    names = schema.fieldNames()
    for field in schema.fields:
        allowed = types.get(field.name)
        if allowed is None:
            raise SinkFailure(
                f"the sink has no place for column {field.name!r}: select {', '.join(types)}, for example "
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
