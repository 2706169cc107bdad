"""`format("headrace")`: a data source for Spark that writes to a topic, exactly once.

from headrace.spark.sink.datasource import register
register(spark)
frame.writeStream.format("headrace").option("kafka.bootstrap.servers", ...).option("topic", ...).start()
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from headrace.spark.concealing import conceal_options
from headrace.spark.sink import driver
from headrace.spark.sink.decision import SinkFailure
from headrace.spark.sink.options import Options, parse_options
from headrace.spark.sink.plan import Plan, TaskDone
from headrace.spark.sink.schema import check_schema

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_QUERY = "sql.streaming.queryId"
_JOB_GROUP = "spark.jobGroup.id"
"""Spark names the jobs of a query after its run: the same for all batches until it is started again."""


_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_SPARKS_OWN_ROWS: Final = "10000"
_FEW_ROWS: Final = "500"
"""Spark measures an Arrow batch after each row, and for a column of null lists from its first row on. With
its ten thousand rows, a frame whose `headers` are null, as the connector gives them for every record without
headers, costs five times what it costs with empty ones, and a young JVM thirteen times."""


def register(spark: SparkSession) -> None:
    """Make `format("headrace")` known to this session, as `headrace.spark.session()` does.

    Arrow batches get 500 rows at most, unless the session has a number of its own. Plans do not show how a
    sink or source connects.
    """
    spark.dataSource.register(HeadraceSink)
    conceal_options(spark)
    if spark.conf.get(_ROWS, _SPARKS_OWN_ROWS) == _SPARKS_OWN_ROWS:
        spark.conf.set(_ROWS, _FEW_ROWS)


class HeadraceSink(DataSource):
    @classmethod
    def name(cls) -> str:
        return "headrace"

    def schema(self) -> NoReturn:
        """Spark asks this of whoever reads."""
        raise SinkFailure(
            'format("headrace") writes. To read a topic: headrace.spark.read_topic(spark, TOPIC, '
            'kafka={"bootstrap.servers": "HOST:PORT"}), or stream_topic(...) for a stream'
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
        if overwrite:
            raise SinkFailure("a topic cannot be overwritten: use output mode append")
        return StreamWriter(self._checked(schema, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        if overwrite:
            raise SinkFailure('a topic cannot be overwritten: use .mode("append")')
        return BatchWriter(self._checked(schema, streaming=False))

    def _checked(self, schema: StructType, *, streaming: bool) -> Options:
        options = parse_options(self.options, streaming=streaming)
        check_schema(schema, options.topic)
        return options


class _Planned:
    """A writer is made before the tasks, and made again for the commit. Only the first is sent to tasks, that
    is, pickled: that is when the plan is made, and what happens to it then happens once for each batch."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.plan: Plan | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self.plan is None:
            self.plan = asyncio.run(driver.plan(self.options))
        return self.__dict__

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        # Only tasks need Arrow; the processes that plan and commit start sooner without it.
        from headrace.spark.sink.task import Place, write

        assert self.plan is not None
        context = TaskContext.get()
        assert context is not None
        run_name, query = self._names(self.plan, context)
        place = Place(
            run_name,
            query,
            task=context.partitionId(),
            attempt=context.attemptNumber(),
            execution=context.taskAttemptId(),
        )
        return write(self.plan, place, iterator)

    def _names(self, plan: Plan, context: TaskContext) -> tuple[str, str]:
        """Of the run, and of the query that the batch is one of."""
        raise NotImplementedError


class StreamWriter(_Planned, DataSourceStreamArrowWriter):
    def _names(self, plan: Plan, context: TaskContext) -> tuple[str, str]:
        run_name, query = context.getLocalProperty(_JOB_GROUP), context.getLocalProperty(_QUERY)
        assert query, "Spark names the query to the tasks of a stream"
        return run_name or plan.job, query

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        asyncio.run(driver.commit(self.options, _ours(messages), batchId))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's name; a decision knows its batch
        asyncio.run(driver.abort(self.options, _ours(messages)))


class BatchWriter(_Planned, DataSourceArrowWriter):
    """A job is one batch. With a job.id, a second run of the same job is a replay, and writes nothing.

    It is no batch of a query, also where Spark names one: in foreachBatch each would be taken for the first.
    """

    def _names(self, plan: Plan, context: TaskContext) -> tuple[str, str]:  # noqa: ARG002 - as for a stream
        return plan.job, f"job {plan.options.job or plan.job}"

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        asyncio.run(driver.commit(self.options, _ours(messages), 0))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        asyncio.run(driver.abort(self.options, _ours(messages)))


def _ours(messages: list[WriterCommitMessage | None]) -> list[TaskDone | None]:
    return [message if isinstance(message, TaskDone) else None for message in messages]
