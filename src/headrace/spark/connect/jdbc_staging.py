"""Records of a batch into a table of their own beside the target, typed, a row for each key: by Spark's own
JDBC writer, from all tasks at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from headrace.connect.config import Config
from headrace.connect.jdbc.columns import Column, Form
from headrace.connect.jdbc.folding import Plan, Read, Staged, fold, read, unreadable
from headrace.connect.jdbc.upserting import (
    KIND,
    NUMBER,
    OFFSET,
    PARTITION,
    REASON,
    SHAPE,
    STEP,
    TOPIC,
    staged_name,
)
from headrace.connect.records import Rejected
from headrace.spark.connect.batches import records_of

_READ: Final = "key string, topic string, partition int, offset bigint, change string, reason string"
_HEAD: Final = (
    f"{NUMBER} bigint, {STEP} int, {KIND} string, {SHAPE} string, {TOPIC} string, {PARTITION} int, "
    f"{OFFSET} bigint, {REASON} string"
)
_AT_A_TIME: Final = 5_000
_TASK_BITS: Final = 40
"""Rows of a task are numbered below this many bits, and tasks above."""


def staged_rows(records: DataFrame, plan: Plan, config: Config, tasks: int) -> DataFrame:
    """The columns of the staging table. Keys are brought together, each in the order of its records."""
    parted = records.mapInArrow(_reader(plan, config), _READ).repartition(tasks, "key")
    ordered = parted.sortWithinPartitions("key", "offset", "topic", "partition")
    columns = plan.target.columns
    texts = "".join(f", {staged_name(index)} string" for index in range(len(columns)))
    rows = ordered.mapInArrow(_folder(plan), _HEAD + texts)
    head = [NUMBER, STEP, KIND, SHAPE, TOPIC, PARTITION, OFFSET, REASON]
    return rows.select(*head, *(_typed(staged_name(index), each) for index, each in enumerate(columns)))


def _typed(name: str, column: Column) -> SparkColumn:
    """The texts are right for it already."""
    found = sf.col(name)
    if column.form is Form.BYTES:
        return sf.unbase64(found).alias(name)
    kinds = {
        Form.WHOLE: "bigint",
        Form.FLOAT: "double",
        Form.BOOLEAN: "boolean",
        Form.DECIMAL: f"decimal({column.size},{column.scale})",
    }
    kind = kinds.get(column.form)
    return found if kind is None else found.cast(kind).alias(name)


def _reader(plan: Plan, config: Config) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Runs in a task."""

    def reads(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        types = (pa.string(), pa.string(), pa.int32(), pa.int64(), pa.string(), pa.string())
        refused: list[Rejected] = []
        records = records_of(batches, config, refused)
        while found := list(islice(records, _AT_A_TIME)):
            rows = [each for record in found if (each := read(plan, record)) is not None]
            yield from _batches(rows, Read._fields, types)
        dead = plan.dead
        left = [unreadable(each) for each in refused if (each.topic, each.partition, each.offset) not in dead]
        yield from _batches(left, Read._fields, types)

    return reads


def _folder(plan: Plan) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Runs in a task. A task that is repeated gives its rows the same numbers."""

    def folded(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        number = (context.partitionId() if context is not None else 0) << _TASK_BITS
        texts = len(plan.target.columns)
        types = (
            *(pa.int64(), pa.int32(), pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64()),
            *(pa.string(),) * (1 + texts),
        )
        names = [NUMBER, STEP, KIND, SHAPE, TOPIC, PARTITION, OFFSET, REASON]
        names += [staged_name(index) for index in range(texts)]
        rows = fold(plan, (Read(**row) for batch in batches for row in batch.to_pylist()))
        while found := list(islice(rows, _AT_A_TIME)):
            yield from _batches([_flat(number + at, each) for at, each in enumerate(found)], names, types)
            number += len(found)

    return folded


def _flat(number: int, each: Staged) -> tuple[Any, ...]:
    return (number, *each[:-1], *each.values)


def _batches(rows: list[Any], names: Iterable[str], types: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    if rows:
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, list(names))
