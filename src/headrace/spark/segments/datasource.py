"""`format("headrace-segments")`: a data source for Spark that reads sealed segments past the brokers.

from headrace.spark.segments.datasource import register
register(spark)
spark.read.format("headrace-segments").option("topic", "orders").option("tier", "s3://...").load()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from headrace.arrow.columns import Bounds
from headrace.arrow.partition_reader import Reading
from headrace.spark.segments import job, pushdown
from headrace.spark.segments.errors import SegmentsRefused, told
from headrace.spark.segments.options import COLUMNS, Options, checked_columns, parse_options
from headrace.spark.segments.plan import Task, tasks

if TYPE_CHECKING:
    from pyarrow import RecordBatch

FORMAT: Final = "headrace-segments"
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `format("headrace-segments")` known to this session, as `headrace.spark.session()` does. Filters
    are given to Python's data sources from then on."""
    spark.dataSource.register(HeadraceSegments)
    spark.conf.set(_PUSHDOWN, "true")


def schema_of(columns: Iterable[str]) -> str:
    return ", ".join(f"`{name}` {COLUMNS[name]}" for name in columns)


class HeadraceSegments(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        with told():
            return schema_of(parse_options(self.options).columns)

    def reader(self, schema: StructType) -> SegmentsReader:
        with told():
            return SegmentsReader(parse_options(self.options), schema)


class SegmentsReader(DataSourceReader):
    """Made for a plan, and sent to its tasks."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._columns = checked_columns(schema.names)
        for field in schema.fields:
            if field.dataType.simpleString() != COLUMNS[field.name]:
                raise SegmentsRefused(
                    f"{field.name} is {COLUMNS[field.name]}, not {field.dataType.simpleString()}: leave "
                    ".schema(...) out, or name columns with the types that they have"
                )
        self._pushed = pushdown.Pushed()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        self._pushed, left = pushdown.push(filters)
        return left

    def partitions(self) -> list[InputPartition]:
        options, pushed = self._options, self._pushed
        if options.tasks is not None:
            return [InputPartition(task) for task in options.tasks]
        with told(), options.place.opened(patient=False) as opened:
            spans = job.list_spans(
                opened,
                options.topic,
                options.partitions,
                options.bounds_of,
                wants=pushed.wants,
                narrowed=pushed.narrowed,
                committed_only=options.committed_only,
            )
        return [InputPartition(task) for task in tasks(spans, options.task_bytes)]

    def read(self, partition: InputPartition | None) -> Iterator[RecordBatch]:
        if partition is None:  # Spark has one task where we have none
            return
        from headrace.spark.segments.batches import batches, wanted

        task: Task = partition.value
        reading = Reading(
            wanted(self._columns),
            self._pushed.narrowed(Bounds()),
            committed_only=self._options.committed_only,
        )
        with told():
            yield from batches(job.read_task(self._options.place, task, reading), self._columns)
