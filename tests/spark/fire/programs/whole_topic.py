"""The driver of a query that reads a whole topic: the lake's table, then a bucket, then the brokers.

`python -m tests.spark.fire.programs.whole_topic ORDERS`
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Final

from click.testing import CliRunner
from pyspark.sql import DataFrame

from headrace.cli.main import cli
from headrace.spark import session, stream_whole_topic
from tests.cluster.tiered_store import ENVIRONMENT
from tests.cluster_process import eventually
from tests.spark.driver_process import DriverProcess
from tests.spark.fire.field import Field
from tests.spark.fire.job import Feed
from tests.spark.fire.orders import Orders
from tests.spark.fire.programs import lake

TIERED: Final = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "200000",
    "local.retention.bytes": "400000",
}
_LAKE_SECONDS: Final = 600.0
_TIER_SECONDS: Final = 120.0
_ACTIVE_RECORDS: Final = 5000
"""Of a partition, that a segment which is not sealed may have."""
_BUCKET: Final = "bucket.json"


def output(orders: Orders) -> Path:
    return orders.tables / "whole"


def prepare(orders: Orders, feed: Feed, field: Field) -> None:
    """A table with the oldest records, a bucket with those after them, brokers with the rest."""
    program = DriverProcess(
        "tests.spark.fire.programs.lake",
        dataclasses.replace(orders, settings=field.spark.session_settings(), finish=True).to_json(),
        orders.path / "lake.out",
    )
    assert program.wait(_LAKE_SECONDS) == 0, (orders.path / "lake.out").read_text(errors="replace")[-4000:]
    feed(2 * orders.batch_records)
    eventually(lambda: _is_tiered(orders), _TIER_SECONDS, f"{orders.source} is in the bucket")
    said = field.brokers.properties
    bucket = {
        "tier": said["headrace.tier.url"],
        "endpoint": said["headrace.tier.endpoint"],
        "region": said["headrace.tier.region"],
    }
    (orders.path / _BUCKET).write_text(json.dumps(bucket))


def _is_tiered(orders: Orders) -> bool:
    command = ["tier", "status", orders.source, "--bootstrap", orders.bootstrap, "--json"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.output)
    return all(row["local_start"] > 0 and row["end"] - row["tiered_end"] < _ACTIVE_RECORDS for row in rows)


def main() -> None:
    orders = Orders.from_json(sys.argv[1])
    os.environ.update(ENVIRONMENT)
    spark = session(
        "under-fire", master=orders.master, warehouse=orders.path / "warehouse", extra=orders.settings
    )
    spark.sparkContext.setLogLevel("WARN")
    rows = stream_whole_topic(
        spark,
        orders.source,
        checkpoint=orders.checkpoint,
        lake=lake.write_config(orders),
        **json.loads((orders.path / _BUCKET).read_text()),
        max_records=orders.batch_records,
    )

    def write(batch: DataFrame, number: int) -> None:
        """A batch that comes again replaces what the first attempt wrote."""
        batch.write.mode("overwrite").parquet(str(output(orders) / f"batch={number}"))

    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", orders.checkpoint)
    if orders.finish:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
