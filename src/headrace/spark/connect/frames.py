"""The records of a source's parts as a frame: each part is read by one task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from headrace.connect.api import Source, Step
from headrace.connect.config import Config
from headrace.connect.converters import Converter, converter_of
from headrace.connect.records import Record

SCHEMA: Final = (
    "topic string, partition int, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)
_ROWS: Final = 10_000
_BYTES: Final = 8 * 1024 * 1024


def frame_of(spark: SparkSession, connector: type[Source], config: Config, step: Step) -> DataFrame:
    if step.frame is not None:
        return step.frame(spark)
    parts: Sequence[Any] = step.parts or [list(step.records)]
    numbers = spark.range(0, len(parts), 1, len(parts))
    reader = _reader(connector, config, list(parts), given=not step.parts)
    return numbers.mapInArrow(reader, SCHEMA)


def _reader(
    connector: type[Source], config: Config, parts: list[Any], *, given: bool
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Runs in a task. With `given`, the parts are the records themselves."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]
        source = None if given else connector(config)
        try:
            for number in numbers:
                found = parts[number] if source is None else source.read(parts[number])
                yield from _batches(found, config)
        finally:
            if source is not None:
                source.stop()

    return read


def _batches(records: Iterable[Record], config: Config) -> Iterator[Any]:
    """In batches of Arrow of a bounded size."""
    keys = converter_of(config.given, "key.converter")
    values = converter_of(config.given, "value.converter")
    rows: list[Record] = []
    size = 0
    for record in records:
        row = _converted(record, keys, values)
        rows.append(row)
        size += len(row.value or b"") + len(row.key or b"")
        if len(rows) >= _ROWS or size >= _BYTES:
            yield _arrow(rows)
            rows, size = [], 0
    if rows:
        yield _arrow(rows)


def _converted(record: Record, keys: Converter, values: Converter) -> Record:
    return record._replace(key=keys.to_bytes(record.key), value=values.to_bytes(record.value))


def _arrow(rows: list[Record]) -> Any:
    import pyarrow as pa

    now_ms = time.time_ns() // 1_000_000
    times = [now_ms if each.timestamp_ms is None else each.timestamp_ms for each in rows]
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    headers = [[{"key": key, "value": value} for key, value in each.headers] for each in rows]
    columns = {
        "topic": pa.array([each.topic for each in rows], pa.string()),
        "partition": pa.array([each.partition for each in rows], pa.int32()),
        "timestamp": pa.array([each * 1000 for each in times], pa.timestamp("us", "UTC")),
        "key": pa.array([each.key for each in rows], pa.binary()),
        "value": pa.array([each.value for each in rows], pa.binary()),
        "headers": pa.array(headers, pa.list_(header)),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
