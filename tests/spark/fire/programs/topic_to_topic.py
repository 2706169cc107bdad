"""The driver of a query from topic to topic. Options: `format` of the writer, `shuffle` by key before it.

`python -m tests.spark.fire.programs.topic_to_topic ORDERS`
"""

from __future__ import annotations

import sys

from headrace.spark import session
from headrace.spark.sink.datasource import register
from tests.spark.fire.orders import Orders


def main() -> None:
    orders = Orders.from_json(sys.argv[1])
    spark = session(
        "under-fire", master=orders.master, warehouse=orders.path / "warehouse", extra=orders.settings
    )
    spark.sparkContext.setLogLevel("WARN")
    if orders.options["format"] == "headrace":
        register(spark)
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", orders.bootstrap)
        .option("subscribe", orders.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", orders.batch_records)
        .load()
        .selectExpr("key", "value")
    )
    if "shuffle" in orders.options:
        rows = rows.repartition("key")
    writer = (
        rows.writeStream.format(orders.options["format"])
        .option("kafka.bootstrap.servers", orders.bootstrap)
        .option("topic", orders.target)
        .option("checkpointLocation", orders.checkpoint)
    )
    if orders.finish:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
