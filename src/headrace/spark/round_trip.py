"""A few records through everything: to a topic, back, and into a table of each format.

    python -m headrace.spark.round_trip HOST:PORT JAR_DIRECTORY [CLIENT_PROPERTIES]

Prints one JSON line for each step, a `Finding` of the doctor; the rest is left to standard error.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headrace.client import admin
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.spark.doctor import Finding
from headrace.spark.kafka_properties import KafkaProperties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RECORDS: Final = 100
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    # It lives for seconds, in which a better compiler only takes time.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


class Trip:
    """Each step is one finding; the first that fails ends the trip."""

    def __init__(
        self,
        bootstrap: str,
        jar_directory: Path,
        say: Callable[[Finding], None],
        client: KafkaProperties | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.client = KafkaProperties({**(client or {}), "bootstrap.servers": bootstrap})
        self.jar_directory = jar_directory
        self.topic = f"headrace-doctor-{uuid.uuid4().hex[:12]}"
        self._say = say

    def run(self) -> bool:
        try:
            brokers = self._ask(self._count_brokers)
            self._say(Finding("brokers", True, f"{brokers} at {self.bootstrap}"))
            self._ask(self._create)
        except ClientFailure as failure:
            self._say(Finding("brokers", False, str(failure), failure.hint))
            return False
        try:
            return self._with_spark()
        finally:
            self._ask(self._delete)

    def _ask(self, what: Callable[[Cluster], Coroutine[Any, Any, int]]) -> int:
        async def asked() -> int:
            async with Cluster(
                self.bootstrap, client_id="headrace-doctor", security=self.client.security()
            ) as cluster:
                return await what(cluster)

        return asyncio.run(asked())

    async def _count_brokers(self, cluster: Cluster) -> int:
        return len((await cluster.metadata([])).brokers)

    async def _create(self, cluster: Cluster) -> int:
        await admin.create_topic(cluster, self.topic, partitions=1)
        return 0

    async def _delete(self, cluster: Cluster) -> int:
        await admin.delete_topics(cluster, [self.topic])
        return 0

    def _with_spark(self) -> bool:
        from headrace.spark import session

        with tempfile.TemporaryDirectory(prefix="headrace-doctor-") as warehouse:
            began = time.monotonic()
            spark = session(
                "headrace-doctor",
                master="local[1]",
                jar_directory=self.jar_directory,
                warehouse=warehouse,
                extra=_SETTINGS,
            )
            try:
                self._say(Finding("spark", True, f"{spark.version} started in {_seconds(began)}"))
                return all(
                    self._step(name, step, spark, Path(warehouse))
                    for name, step in (("topic", self._topic), ("delta", _delta), ("iceberg", _iceberg))
                )
            finally:
                spark.stop()

    def _step(
        self,
        name: str,
        step: Callable[[DataFrame, Path], tuple[int, str]],
        spark: SparkSession,
        warehouse: Path,
    ) -> bool:
        began = time.monotonic()
        try:
            reader = spark.read.format("kafka").options(**self.client.options)
            count, what = step(reader.option("subscribe", self.topic).load(), warehouse)
        except Exception as error:  # whatever Spark or a table format raises, it is what the person must see
            first = str(error).strip().splitlines() or [type(error).__name__]
            said = self.client.conceal(first[0])
            self._say(Finding(name, False, said, "see docs/pipeline.md, Troubles"))
            return False
        found = f"{count} of {_RECORDS} {what} in {_seconds(began)}"
        wrong = "" if count == _RECORDS else "is somebody else writing there, or is a broker losing records?"
        self._say(Finding(name, not wrong, found, wrong))
        return not wrong

    def _topic(self, records: DataFrame, warehouse: Path) -> tuple[int, str]:  # noqa: ARG002  a step like the others
        rows = records.sparkSession.range(_RECORDS)
        rows.selectExpr("cast(id as string) as key", "cast(id as string) as value").write.format(
            "kafka"
        ).options(**self.client.options).option("topic", self.topic).save()
        return records.select("value").distinct().count(), "records written and read"


def _delta(records: DataFrame, warehouse: Path) -> tuple[int, str]:
    path = str(warehouse / "delta")
    records.write.format("delta").save(path)
    return records.sparkSession.read.format("delta").load(path).count(), "rows in a table"


def _iceberg(records: DataFrame, warehouse: Path) -> tuple[int, str]:  # noqa: ARG001  a step like the others
    from headrace.spark.sessions import ICEBERG_CATALOG

    name = f"{ICEBERG_CATALOG}.doctor.records"
    records.writeTo(name).create()
    return records.sparkSession.table(name).count(), "rows in a table"


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def main() -> None:
    # A doctor who has waited long enough asks first: then the topic is still deleted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bootstrap, directory, *files = sys.argv[1:]

    def say(finding: Finding) -> None:
        sys.stdout.write(json.dumps(finding) + "\n")
        sys.stdout.flush()

    client = KafkaProperties.read(files[0]) if files else None
    Trip(bootstrap, Path(directory), say, client).run()


if __name__ == "__main__":
    main()
