"""Spark's own Kafka connector with Python at the wheel.

Spark asks a source on the driver where a batch ends and what its tasks are to read. Here Python answers these
questions (as it does for `foreachBatch`), and hands everything else to the connector. Tasks are the
connector's own: no record passes through Python.
"""
# ruff: noqa: N802  Java calls these methods by its own names.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]  # comes with PySpark, without types
from pyspark import java_gateway
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.lake.checkpoint import Offsets, offsets_json, parse_offsets


class Control(Protocol):
    """What decides for one source of one running query. All calls but `name` come from the query's thread."""

    @property
    def name(self) -> str:
        """What Spark shows as the source's description."""
        ...

    def begins(self) -> Offsets | None:
        """The query has no checkpoint yet. None: it asks the connector where to begin."""
        ...

    def ends_with_what_is_there(self) -> None:
        """The trigger is availableNow."""
        ...

    def following(self, position: Offsets) -> Offsets:
        """Where the next batch ends. The last one ended at `position`, and Spark has committed it."""
        ...

    def read(self, begin: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """What the tasks of a batch read. Everything up to `begin` is committed."""
        ...

    @property
    def latest(self) -> Offsets: ...

    def metrics(self, position: Offsets) -> Mapping[str, str]: ...

    def stopped(self) -> None: ...


MakeControl = Callable[[JavaObject, str], Control]
"""From the connector's own stream, and the place of the source's files in the checkpoint."""


class Proxy:
    """What Java expects of every object."""

    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        return other is self

    def toString(self) -> str:
        return "headrace"


class ControlledTable(Proxy):
    def __init__(self, jvm: Any, table: Any, make: MakeControl) -> None:
        self._jvm = jvm
        self._table = table
        self._make = make

    def name(self) -> str:
        return "headrace"

    def schema(self) -> Any:
        return self._table.schema()

    def columns(self) -> Any:
        return self._table.columns()

    def capabilities(self) -> Any:
        """Nothing else: Spark then says itself that a continuous trigger is not possible."""
        which = self._jvm.org.apache.spark.sql.connector.catalog.TableCapability
        return self._jvm.java.util.Collections.singleton(which.MICRO_BATCH_READ)

    def newScanBuilder(self, options: Any) -> ControlledScan:
        return ControlledScan(self._jvm, self._table.newScanBuilder(options).build(), self._make)

    class Java:
        implements = ("org.apache.spark.sql.connector.catalog.SupportsRead",)


class ControlledScan(Proxy):
    """Its own builder: there is nothing to push down."""

    def __init__(self, jvm: Any, scan: Any, make: MakeControl) -> None:
        self._jvm = jvm
        self._scan = scan
        self._make = make

    def build(self) -> ControlledScan:
        return self

    def readSchema(self) -> Any:
        return self._scan.readSchema()

    def description(self) -> str:
        return "headrace"

    def toMicroBatchStream(self, where: str) -> ControlledStream:
        stream = self._scan.toMicroBatchStream(where)
        return ControlledStream(self._jvm, stream, self._make(stream, where))

    def supportedCustomMetrics(self) -> Any:
        return self._scan.supportedCustomMetrics()

    def reportDriverMetrics(self) -> Any:
        return self._scan.reportDriverMetrics()

    def columnarSupportMode(self) -> Any:
        return self._scan.columnarSupportMode()

    class Java:
        implements = (
            "org.apache.spark.sql.connector.read.ScanBuilder",
            "org.apache.spark.sql.connector.read.Scan",
        )


class ControlledStream(Proxy):
    """The connector's stream, which does as `control` says."""

    def __init__(self, jvm: Any, stream: Any, control: Control) -> None:
        self._jvm = jvm
        self._stream = stream
        self._control = control

    def toString(self) -> str:
        return self._control.name

    def initialOffset(self) -> Any:
        begin = self._control.begins()
        return self._stream.initialOffset() if begin is None else self._java(begin)

    def deserializeOffset(self, json: str) -> Any:
        return self._stream.deserializeOffset(json)

    def getDefaultReadLimit(self) -> Any:
        """Limits are the control's."""
        return self._jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._control.ends_with_what_is_there()

    def latestOffset(self, start: Any, _limit: Any) -> Any:
        position = offsets_in(start)
        end = self._control.following(position)
        return start if end == position else self._java(end)

    def reportLatestOffset(self) -> Any:
        return self._java(self._control.latest) if self._control.latest else None

    def planInputPartitions(self, start: Any, end: Any) -> Any:
        begins, ends = self._control.read(offsets_in(start), offsets_in(end))
        return self._stream.planInputPartitions(self._java(begins), self._java(ends))

    def createReaderFactory(self) -> Any:
        return self._stream.createReaderFactory()

    def commit(self, end: Any) -> None:
        self._stream.commit(end)

    def metrics(self, consumed: Any) -> Any:
        found = self._jvm.java.util.HashMap()
        if consumed.isPresent():
            for name, value in self._control.metrics(offsets_in(consumed.get())).items():
                found.put(name, value)
        return found

    def stop(self) -> None:
        try:
            self._stream.stop()
        finally:
            self._control.stopped()

    def _java(self, offsets: Offsets) -> Any:
        return self._stream.deserializeOffset(offsets_json(offsets))

    class Java:
        implements = (
            "org.apache.spark.sql.connector.read.streaming.MicroBatchStream",
            "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow",
            "org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics",
        )


def offsets_in(java: Any) -> Offsets:
    """All in one call: one for each partition would cost more than the brokers' answer."""
    return parse_offsets(java.json())


def controlled(spark: SparkSession, frame: DataFrame, make: MakeControl) -> DataFrame:
    """The connector's streaming frame, in which `make` gives each query's source its control."""
    # Not a public name, but what `foreachBatch` itself uses. It has no types.
    start_callbacks: Any = java_gateway.ensure_callback_server_started
    start_callbacks(spark.sparkContext._gateway)
    jvm: Any = spark._jvm
    plan = frame._jdf.queryExecution().analyzed()
    relation = jvm.org.apache.spark.sql.catalyst.streaming.StreamingRelationV2(
        plan.source(),
        plan.sourceName(),
        ControlledTable(jvm, plan.table(), make),
        plan.extraOptions(),
        plan.output(),
        plan.catalog(),
        plan.identifier(),
        # The connector's older form, which nothing falls back to here. A plan would show its options whole.
        jvm.scala.Option.apply(None),
    )
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, relation)
    return DataFrame(rows, spark)
