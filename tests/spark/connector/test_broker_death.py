"""A query of Spark's own connector goes on while brokers are killed: nothing is missing, nothing twice."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.cluster_process import HeadraceCluster, eventually
from tests.spark.connector.topics import Sent, hand_over, stream, values
from tests.zookeeper_server import CACHE

_PARTITIONS = 3
_IN_SYNC = {"min.insync.replicas": "2"}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeadraceCluster]:
    monkeypatch.setenv("HEADRACE_ZOOKEEPER_CLASSPATH", f"{CACHE}/*")
    with HeadraceCluster(tmp_path / "cluster", 3) as cluster:
        yield cluster


class Feeder(threading.Thread):
    """Numbers, one after the other, until it is told to stop. What it gave is acknowledged by then."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5}
        )
        self._topic = topic
        self._over = threading.Event()
        self.count = 0

    def run(self) -> None:
        while not self._over.wait(0.05):
            hand_over(
                self._producer,
                self._topic,
                [Sent(f"{number:06}", number % _PARTITIONS) for number in range(self.count, self.count + 10)],
            )
            self.count += 10
            self._producer.poll(0)

    def finish(self) -> int:
        self._over.set()
        self.join(60)
        assert not self.is_alive()
        assert self._producer.flush(60) == 0
        return self.count


def test_a_running_query_goes_through_the_death_of_each_broker(
    spark: SparkSession, cluster: HeadraceCluster, tmp_path: Path
) -> None:
    cluster.create_topic("numbers", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], _IN_SYNC)
    table = str(tmp_path / "table")
    rows = stream(
        spark,
        cluster.bootstrap,
        {"subscribe": "numbers", "startingOffsets": "earliest", "kafka.default.api.timeout.ms": 60_000},
    )
    query = (
        rows.writeStream.format("parquet")
        .option("path", table)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    feeder = Feeder(cluster.bootstrap, "numbers")
    feeder.start()

    def loaded() -> int:
        """How far the last batch went, all partitions together."""
        last = query.lastProgress
        ends = json.loads(last.json)["sources"][0]["endOffset"] if last is not None else None
        return sum(ends["numbers"].values()) if ends else 0

    try:
        for broker in cluster.brokers:
            before = loaded()
            eventually(lambda: loaded() > before, 120, "the query moves")  # noqa: B023  called before the next
            cluster.kill(broker)
            during = loaded()
            eventually(lambda: loaded() > during + 200, 120, "the query moves without a broker")  # noqa: B023  the same
            cluster.restart(broker)
            cluster.wait_in_sync("numbers")
        count = feeder.finish()
        deadline = time.monotonic() + 120
        while loaded() < count and query.isActive and time.monotonic() < deadline:
            time.sleep(0.5)
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        feeder.finish()
        query.stop()
    assert values(spark.read.parquet(table)) == [f"{number:06}" for number in range(count)]
