"""A list of pieces, fixed beforehand, as a source of a streaming query.

An offset is how many pieces were read. What a batch reads is planned by an ordinary scan of its pieces, whose
partitions and readers are Spark's own; Python only says which pieces these are.
"""
# ruff: noqa: N802  Java calls these methods by its own names.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyspark import java_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headrace.spark.history.plan import HistoryRefused
from headrace.spark.source.connector import Proxy

PIECES: Final = 64
"""Of a batch."""


class Pieces:
    """One list and how far the query is with it."""

    def __init__(
        self,
        name: str,
        total: int,
        frame: Callable[[int, int], DataFrame],
        may_begin: Callable[[], bool] = lambda: True,
        pieces: int = PIECES,
    ) -> None:
        """`frame`: from one piece to before another, as a batch frame. `may_begin`: what is to come before
        this has come."""
        self.name = name
        self.total = total
        self.frame = frame
        self.position: int | None = None
        """That Spark has told last; None before it has asked."""
        self._may_begin = may_begin
        self._pieces = pieces

    @property
    def is_through(self) -> bool:
        return self.position == self.total

    def following(self, position: int) -> int:
        self.position = position
        return min(position + self._pieces, self.total) if self._may_begin() else position


class _Table(Proxy):
    def __init__(self, jvm: Any, gateway: Any, schema: Any, pieces: Pieces, checkpoint: str) -> None:
        self._jvm = jvm
        self._gateway = gateway
        self._schema = schema
        self._pieces = pieces
        self._checkpoint = checkpoint

    def name(self) -> str:
        return self._pieces.name

    def schema(self) -> Any:
        return self._schema

    def columns(self) -> Any:
        return self._jvm.org.apache.spark.sql.connector.catalog.CatalogV2Util.structTypeToV2Columns(
            self._schema
        )

    def capabilities(self) -> Any:
        which = self._jvm.org.apache.spark.sql.connector.catalog.TableCapability
        return self._jvm.java.util.Collections.singleton(which.MICRO_BATCH_READ)

    def newScanBuilder(self, _options: Any) -> _Scan:
        return _Scan(self._jvm, self._gateway, self._schema, self._pieces, self._checkpoint)

    class Java:
        implements = ("org.apache.spark.sql.connector.catalog.SupportsRead",)


class _Scan(Proxy):
    def __init__(self, jvm: Any, gateway: Any, schema: Any, pieces: Pieces, checkpoint: str) -> None:
        self._jvm = jvm
        self._gateway = gateway
        self._schema = schema
        self._pieces = pieces
        self._checkpoint = checkpoint

    def build(self) -> _Scan:
        return self

    def readSchema(self) -> Any:
        return self._schema

    def description(self) -> str:
        return self._pieces.name

    def toMicroBatchStream(self, where: str) -> _Stream:
        require_checkpoint(self._checkpoint, where)
        return _Stream(self._jvm, self._pieces)

    def supportedCustomMetrics(self) -> Any:
        return self._none("CustomMetric")

    def reportDriverMetrics(self) -> Any:
        return self._none("CustomTaskMetric")

    def _none(self, kind: str) -> Any:
        return self._gateway.new_array(getattr(self._jvm.org.apache.spark.sql.connector.metric, kind), 0)

    def columnarSupportMode(self) -> Any:
        modes = getattr(self._jvm.org.apache.spark.sql.connector.read, "Scan$ColumnarSupportMode")
        return modes.PARTITION_DEFINED

    class Java:
        implements = (
            "org.apache.spark.sql.connector.read.ScanBuilder",
            "org.apache.spark.sql.connector.read.Scan",
        )


class _Stream(Proxy):
    def __init__(self, jvm: Any, pieces: Pieces) -> None:
        self._jvm = jvm
        self._pieces = pieces
        self._batch: Any = None

    def toString(self) -> str:
        return self._pieces.name

    def initialOffset(self) -> Any:
        return self._offset(0)

    def deserializeOffset(self, json: str) -> Any:
        return self._offset(int(json))

    def _offset(self, number: int) -> Any:
        return self._jvm.org.apache.spark.sql.execution.streaming.runtime.LongOffset(number)

    def getDefaultReadLimit(self) -> Any:
        """How much comes at once, `Pieces` knows."""
        return self._jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The list does not grow."""

    def latestOffset(self, start: Any, _limit: Any) -> Any:
        return self._offset(self._pieces.following(int(start.json())))

    def reportLatestOffset(self) -> Any:
        return self._offset(self._pieces.total)

    def planInputPartitions(self, start: Any, end: Any) -> Any:
        frame = self._pieces.frame(int(start.json()), int(end.json()))
        self._batch = frame._jdf.queryExecution().optimizedPlan().scan().toBatch()
        return self._batch.planInputPartitions()

    def createReaderFactory(self) -> Any:
        """Behind the planning of a batch."""
        assert self._batch is not None, "Spark plans first"
        return self._batch.createReaderFactory()

    def commit(self, end: Any) -> None:
        """Nobody waits for it."""

    def stop(self) -> None:
        """Nothing is open."""

    class Java:
        implements = (
            "org.apache.spark.sql.connector.read.streaming.MicroBatchStream",
            "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow",
        )


def require_checkpoint(checkpoint: str, where: str) -> None:
    """`where` is the place of a source's files in the checkpoint that the query was started with."""
    if not _bare(where).startswith(f"{_bare(checkpoint)}/sources/"):
        raise HistoryRefused(
            f"the frame was made for the checkpoint {checkpoint}, and the query has another: start it with "
            f'.option("checkpointLocation", "{checkpoint}")'
        )


def _bare(place: str) -> str:
    scheme, colon, path = place.rstrip("/").partition(":")
    return f"/{(path if colon else scheme).lstrip('/')}"


def streamed(spark: SparkSession, schema: StructType, pieces: Pieces, checkpoint: str) -> DataFrame:
    """As a streaming frame. Whoever starts it has to do so with this checkpoint."""
    start_callbacks: Any = java_gateway.ensure_callback_server_started
    gateway: Any = spark.sparkContext._gateway
    start_callbacks(gateway)
    jvm: Any = spark._jvm
    empty = spark.createDataFrame([], schema)
    none = jvm.scala.Option.apply(None)
    relation = jvm.org.apache.spark.sql.catalyst.streaming.StreamingRelationV2(
        none,
        pieces.name,
        _Table(jvm, gateway, empty._jdf.schema(), pieces, checkpoint),
        jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty(),
        empty._jdf.queryExecution().analyzed().output(),
        none,
        none,
        none,
    )
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, relation)
    return DataFrame(rows, spark)
