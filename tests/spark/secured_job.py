"""What of ours speaks to brokers, and Spark's connector, on a cluster whose workers get a token.

`python -m tests.spark.secured_job JSON`; when all is done it waits for as long as the file `held` is there.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from headrace.spark import DelegationToken, KafkaProperties, read_topic, session, stream_topic
from headrace.spark.audit.config import AuditConfig
from headrace.spark.audit.job import Auditor
from headrace.spark.lake import config as lake_configs
from headrace.spark.lake import job as lake_job
from headrace.spark.source.brokers import BrokersFailed
from headrace.spark.table import config as table_configs
from headrace.spark.table import job as table_job
from tests.spark import spark_tokens
from tests.spark.shown import plans

RECORDS: Final = 200


@dataclass(frozen=True)
class Orders:
    master: str
    settings: dict[str, str]
    directory: str
    """Of tables and checkpoints, and of what the job tells: `results.json`, `shown.txt`."""
    held: str
    password: str
    """A client file by which the driver logs in with a password; tasks do it at the same listener."""
    certificate: str
    """The like by a certificate, at another listener."""
    secrets: str
    """Where the job writes the passwords of its tokens, so that they can be looked for."""
    topic: str
    parts: list[str]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class Job:
    def __init__(self, spark: SparkSession, orders: Orders, kafka: KafkaProperties) -> None:
        self.spark = spark
        self.kafka = kafka
        self.topic = orders.topic
        self.directory = Path(orders.directory)

    def copy_of(self, how: str) -> str:
        """The test has made these topics."""
        return f"{self.topic}-{how}"

    def by_sink(self) -> int:
        rows = self.spark.range(0, RECORDS, 1, 4)
        rows = rows.selectExpr("cast(id % 8 as string) as key", "to_json(struct(id)) as value")
        writer = rows.write.format("headrace").options(**self.kafka.options).option("topic", self.topic)
        writer.mode("append").save()
        return read_topic(self.spark, self.topic, kafka=self.kafka).count()

    def by_connector(self) -> int:
        options = self.kafka.options
        read = self.spark.read.format("kafka").options(**options).option("subscribe", self.topic).load()
        copy = self.copy_of("connector")
        read.select("key", "value").write.format("kafka").options(**options).option("topic", copy).save()
        return read_topic(self.spark, copy, kafka=self.kafka).count()

    def by_source(self) -> int:
        """From our source, with a group, to the connector's sink."""
        return self._streamed("source", "kafka")

    def by_stream(self) -> int:
        """The same to our sink. That starts a Python on the driver for each query, which takes seconds."""
        return self._streamed("stream", "headrace")

    def _streamed(self, how: str, sink: str) -> int:
        copy = self.copy_of(how)
        frame = stream_topic(self.spark, self.topic, kafka=self.kafka, group=f"group-{copy}")
        frame.explain(True)
        query = (
            frame.select("key", "value")
            .writeStream.format(sink)
            .options(**self.kafka.options)
            .option("topic", copy)
            .option("checkpointLocation", str(self.directory / f"checkpoint-{how}"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return read_topic(self.spark, copy, kafka=self.kafka).count()

    @property
    def plain_topic(self) -> str:
        """One without transactions: those have markers, which tables and the audit count among offsets."""
        return self.copy_of("connector")

    def lake(self) -> int:
        text = '[kafka]\n"bootstrap.servers" = "unused:1"\n[lake]\nformat = "delta"\nlocation = "lake"\n'
        path = self.directory / "lake.toml"
        config = lake_configs.parse(f'{text}[[topics]]\nname = "{self.plain_topic}"\n', path)
        (done,) = lake_job.run(self.spark, replace(config, kafka=self.kafka), once=True)
        return done.new.rows

    def table(self) -> int:
        text = '[kafka]\n"bootstrap.servers" = "unused:1"\n[store]\nlocation = "tables"\n'
        path = self.directory / "table.toml"
        config = table_configs.parse(f'{text}[[tables]]\ntopic = "{self.plain_topic}"\nname = "t"\n', path)
        store = replace(config.store, kafka=self.kafka)
        (done,) = table_job.run(self.spark, replace(config, store=store), once=True)
        return done.new.records

    def audit(self) -> int:
        state = f"file://{self.directory}/audit"
        config = AuditConfig(self.kafka, topics=(self.plain_topic,), state=state, with_producers=False)
        return Auditor(self.spark, config).run_once().records


PARTS: Final[dict[str, Callable[[Job], int]]] = {
    "sink": Job.by_sink,
    "connector": Job.by_connector,
    "source": Job.by_source,
    "stream": Job.by_stream,
    "lake": Job.lake,
    "table": Job.table,
    "audit": Job.audit,
}
SPARK_S_OWN: Final = "tokens of Spark's own"


def work(spark: SparkSession, orders: Orders) -> dict[str, Any]:
    """Of each part how many records it saw; and what whoever has a token is told when it has ended."""
    found: dict[str, Any] = {}
    with DelegationToken.obtain(spark, KafkaProperties.read(orders.password)) as token:
        found["owner"] = token.owner
        credentials = token.kafka.security().credentials
        assert credentials is not None
        Path(orders.secrets).write_text(credentials.password.reveal())
        job = Job(spark, orders, token.kafka)
        for name in orders.parts:
            if name in PARTS:
                began = time.monotonic()
                found[name] = PARTS[name](job)
                print(f"{name} took {time.monotonic() - began:.1f} s", file=sys.stderr)
    found["afterwards"] = _refused(spark, orders.topic, token.kafka)
    if SPARK_S_OWN in orders.parts:
        by_certificate = KafkaProperties.read(orders.certificate)
        with DelegationToken.obtain(spark, by_certificate, bootstrap=token.kafka.bootstrap) as other:
            found["by certificate"] = read_topic(spark, orders.topic, kafka=other.kafka).count()
        found["made by Spark itself"] = spark_tokens.made_by_spark(spark)
        spark_tokens.hand_out(spark, by_certificate, token.kafka.bootstrap)
        found[SPARK_S_OWN] = spark_tokens.read(spark, token.kafka, orders.topic).count()
    return found


def _refused(spark: SparkSession, topic: str, kafka: KafkaProperties) -> str:
    """What is told. Apache Kafka's brokers let a token that was expired in for a moment longer."""
    while True:
        try:
            read_topic(spark, topic, kafka=kafka)
        except BrokersFailed as failed:
            return str(failed)


def main() -> None:
    orders = Orders(**json.loads(sys.argv[1]))
    settings = {**orders.settings, **spark_tokens.settings(KafkaProperties.read(orders.certificate))}
    warehouse = Path(orders.directory) / "warehouse"
    spark = session("secured", master=orders.master, warehouse=warehouse, extra=settings)
    shown = io.StringIO()
    with redirect_stdout(shown):
        found = work(spark, orders)
    directory = Path(orders.directory)
    (directory / "shown.txt").write_text(shown.getvalue() + plans(spark))
    (directory / "results.part").write_text(json.dumps(found))
    (directory / "results.part").rename(directory / "results.json")
    while Path(orders.held).exists():
        time.sleep(0.1)
    spark.stop()


if __name__ == "__main__":
    main()
