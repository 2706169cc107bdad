"""A query from files to a topic whose driver dies, all of it and at once, at a place that it is told.

`python -m tests.spark.sink.crashing_program JSON`
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.spark.sink import decisions, driver
from headrace.spark.sink.datasource import HeadraceSink, StreamWriter
from tests.spark.shared_classes import short_lived

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_GROUP = "HEADRACE_TEST_GROUP"


def die() -> None:
    """The driver's Python and its JVM are one group, this worker is another."""
    os.killpg(int(os.environ[_GROUP]), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class CrashingWriter(StreamWriter):
    """`crash` is a place and a batch."""

    crash: tuple[str, int] = ("", -1)
    flaky: bool = False

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty("streaming.sql.batchId") or -1)
        if self.crash == ("writing", batch) and context.partitionId() == 0:
            iterator = _then_die(iterator)
        if self.flaky and context.attemptNumber() < 2:
            iterator = _then_fail(iterator, hard=context.attemptNumber() == 0)
        return super().write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        place, batch = self.crash
        if batch == batchId:
            if place == "written":
                die()
            if place == "decided":
                _after(decisions, "append_decision", die)
            if place == "ending":
                _after(driver, "end", die)
        super().commit(messages, batchId)
        if self.crash == ("ended", batchId):
            die()


def _then_die(iterator: Iterator[Any]) -> Iterator[Any]:
    yield from iterator
    die()


def _then_fail(iterator: Iterator[Any], *, hard: bool) -> Iterator[Any]:
    """All rows are written by then, or at least some: the writer holds back the last ones."""
    yield from iterator
    if hard:
        os.kill(os.getpid(), signal.SIGKILL)
    raise RuntimeError("a task fails")


def _after(module: Any, name: str, act: Any) -> None:
    original = getattr(module, name)

    async def wrapped(*given: Any, **named: Any) -> None:
        await original(*given, **named)
        act()

    setattr(module, name, wrapped)


class CrashingSink(HeadraceSink):
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        place = self.options.pop("test.crash", ":-1")
        flaky = self.options.pop("test.flaky", "") == "true"
        writer = CrashingWriter(super().streamWriter(schema, overwrite).options)
        name, _, batch = place.partition(":")
        writer.crash = (name, int(batch))
        writer.flaky = flaky
        return writer


def main() -> None:
    orders = json.loads(sys.argv[1])
    os.environ[_GROUP] = str(os.getpid())
    # Neither tables nor Spark's own connector are needed, and a session without them starts in half the time.
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", orders.get("shuffle", "2"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", short_lived())
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(CrashingSink)
    rows = spark.readStream.schema("id long").option("maxFilesPerTrigger", 2).parquet(orders["input"])
    if "shuffle" in orders:
        rows = rows.repartition("id")
    writer = (
        rows.selectExpr("cast(id as string) as key", "cast(id as string) as value")
        .writeStream.format("headrace")
        .option("kafka.bootstrap.servers", orders["bootstrap"])
        .option("topic", orders["topic"])
        .option("checkpointLocation", orders["directory"] + "/checkpoint")
        .option("test.crash", orders.get("crash", ":-1"))
        .option("test.flaky", orders.get("flaky", "false"))
        .trigger(availableNow=True)
    )
    writer.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
