"""The streaming job: `python job.py BOOTSTRAP CHECKPOINT` makes visits of clicks until it is ended.

The state of each visitor is with Spark, and in the checkpoint. A timer in the time of the clicks says when a
visit is over. The visits go into a topic exactly once, however often a batch is repeated.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from clicks import CLICKS, GAP_MINUTES, LATE_MINUTES, VISITS
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.query import StreamingQuery
from visits import Visit, add

from headrace.spark import session, stream_topic

GAP_MS = GAP_MINUTES * 60_000
_STATE = "begin_ms bigint, end_ms bigint, clicks bigint, cents bigint"
_OUTPUT = f"visitor string, {_STATE}"
#: For one machine and little data. State with timers needs the store on RocksDB.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Visits(StatefulProcessor):
    """One visitor at a time: his visits that are not over yet, and a timer for each."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._open = handle.getListState("open", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        before = [Visit(*visit) for visit in self._open.get()]
        after = before
        for row in rows:
            after = add(after, Visit(row.at_ms, row.at_ms, 1, row.cents), GAP_MS)
        self._open.put([tuple(visit) for visit in after])
        timers, wanted = {visit.end_ms for visit in before}, {visit.end_ms for visit in after}
        for end_ms in timers - wanted:
            self._handle.deleteTimer(end_ms + GAP_MS)
        for end_ms in wanted - timers:
            self._handle.registerTimer(end_ms + GAP_MS)
        yield from ()  # a visit is told when it is over

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """No click can come any more that belongs to a visit that ended so early."""
        over_ms = expiredTimerInfo.getExpiryTimeInMs() - GAP_MS
        visits = [Visit(*visit) for visit in self._open.get()]
        left = [tuple(visit) for visit in visits if visit.end_ms != over_ms]
        if left:
            self._open.put(left)
        else:
            self._open.clear()  # Spark refuses an empty list
        for visit in visits:
            if visit.end_ms == over_ms:
                yield Row(visitor=key[0], **visit._asdict())

    def close(self) -> None:
        pass


def start(spark: SparkSession, bootstrap: str, checkpoint: str, *, until_end: bool = False) -> StreamingQuery:
    """`until_end`: everything that is there now, and then the query ends."""
    clicks = stream_topic(
        spark,
        CLICKS,
        kafka=bootstrap,
        decoding="cents bigint",
        undecodable="drop",
        group="visits",
        max_records=2_000,
    )
    visits = (
        clicks.select(
            F.col("key").cast("string").alias("visitor"),
            "timestamp",
            F.unix_millis("timestamp").alias("at_ms"),
            "cents",
        )
        .withWatermark("timestamp", f"{LATE_MINUTES} minutes")
        .groupBy("visitor")
        .transformWithState(Visits(), outputStructType=_OUTPUT, outputMode="Append", timeMode="EventTime")
    )
    writer = (
        visits.select(F.col("visitor").alias("key"), F.to_json(F.struct("*")).alias("value"))
        .writeStream.format("headrace")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", VISITS)
        .option("checkpointLocation", checkpoint)
    )
    trigger = writer.trigger(availableNow=True) if until_end else writer.trigger(processingTime="1 second")
    return trigger.start()


if __name__ == "__main__":
    spark = session("visits", extra=SETTINGS)
    spark.sparkContext.setLogLevel("ERROR")
    start(spark, sys.argv[1], sys.argv[2]).awaitTermination()
