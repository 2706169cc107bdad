"""The job to copy: changes of two tables, joined by customer with `transformWithState`, into a third topic.

Spark's own join of streams would keep every change. This one keeps what is true now, and sends what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from joined import Customer, Known, Order, difference
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as everybody calls it
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.query import StreamingQuery
from topics import CUSTOMERS, ENRICHED, ORDERS

from headrace.spark import stream_topic

#: A row of either table. Of a customer the last three are null, of an order the name and the city.
_ROW = "struct<id bigint, name string, city string, customer_id bigint, cents bigint, status string>"
#: State like this needs the store on RocksDB.
STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}


class Join(StatefulProcessor):
    """One customer at a time."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._customer = handle.getValueState("customer", "name string, city string")
        self._orders = handle.getListState("orders", "id bigint, cents bigint, status string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        customer, orders = self._customer.get(), self._orders.get()
        known = Known(Customer(*customer) if customer else None, (Order(*each) for each in orders))
        before = known.enriched()
        # A shuffle keeps no order. All changes of a row are in one partition, in the order of their commits.
        for change in sorted(rows, key=attrgetter("topic", "partition", "offset")):
            apply(known, change)
        self._keep(known)
        for order, value in difference(before, known.enriched()).items():
            yield Row(key=order, value=value)

    def _keep(self, known: Known) -> None:
        for state, value in ((self._customer, known.customer), (self._orders, known.orders)):
            if not value:
                state.clear()
            elif state is self._customer:
                state.update(value)
            else:
                state.put(value)

    def close(self) -> None:
        pass


def apply(known: Known, change: Row) -> None:
    gone = change.op == "d"
    if change.topic == CUSTOMERS:
        known.customer = None if gone else Customer(change.name, change.city)
    elif gone:
        known.remove(change.id)
    else:
        known.put(Order(change.id, change.cents, change.status))


def start(spark: SparkSession, bootstrap: str, checkpoint: str, *, until_end: bool = False) -> StreamingQuery:
    """`until_end`: everything that is there now, and then the query ends."""
    changes = stream_topic(
        spark,
        [CUSTOMERS, ORDERS],
        kafka=bootstrap,
        decoding=f"op string, before {_ROW}, after {_ROW}",
        undecodable="fail",
        group="enrich",  # `headrace group lag enrich` shows how far it is
    ).where("op is not null")  # behind a delete comes a tombstone, for compaction
    rows = changes.withColumn("row", F.when(F.col("op") == "d", F.col("before")).otherwise(F.col("after")))
    owner = F.when(F.col("topic") == CUSTOMERS, F.col("row.id")).otherwise(F.col("row.customer_id"))
    enriched = (
        rows.select(owner.alias("owner"), "topic", "partition", "offset", "op", "row.*")
        .groupBy("owner")
        .transformWithState(
            Join(), outputStructType="key string, value string", outputMode="Append", timeMode="None"
        )
    )
    writer = (
        enriched.writeStream.format("headrace")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", ENRICHED)
        .option("checkpointLocation", checkpoint)
    )
    trigger = writer.trigger(availableNow=True) if until_end else writer.trigger(processingTime="2 seconds")
    return trigger.start()
