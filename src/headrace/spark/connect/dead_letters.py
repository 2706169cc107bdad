"""Records that a sink refuses: to a topic of dead letters, with where they come from and why, as Kafka
Connect writes them. A job writes them, so a batch that comes again does not write its dead letters again."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from headrace.client.admin import create_topic
from headrace.client.cluster import Cluster
from headrace.client.errors import Refused
from headrace.connect import common_settings
from headrace.connect.api import GiveUp
from headrace.connect.config import Config
from headrace.connect.records import Rejected
from headrace.protocol.error_codes import ErrorCode
from headrace.spark.connect.batches import REJECTED, SinkBatch
from headrace.spark.connect.context import Context
from headrace.spark.connect.naming import letters_id
from headrace.spark.sink.job import run_job

log = logging.getLogger("headrace.connect")

_PREFIX: Final = "__connect.errors."
_HEADERS: Final = "array<struct<key:string,value:binary>>"


class DeadLetters:
    """Of one sink, for one run of it."""

    def __init__(self, context: Context, config: Config) -> None:
        self._context = context
        self._config = config
        self._is_there = False
        self._calls: dict[int, int] = {}
        self.count = 0

    def take(self, batch: SinkBatch, rejected: Iterable[Rejected] | DataFrame) -> None:
        frame = self._frame(batch, rejected)
        first = frame.first()
        if first is None:
            return
        where = f"{first['topic']}, partition {first['partition']}, offset {first['offset']}"
        if self._config[common_settings.TOLERANCE] != "all":
            raise GiveUp(
                f"{where} cannot be written: {first['reason']}. With errors.tolerance=all such records "
                "become dead letters"
            )
        topic = self._config.text(common_settings.DEAD_LETTERS)
        count = frame.count()
        self.count += count
        log.warning(
            "dead letters",
            extra={"connector": self._config.name, "count": count, "first": where, "topic": topic},
        )
        if topic:
            self._write(batch, frame, topic)

    def _frame(self, batch: SinkBatch, rejected: Iterable[Rejected] | DataFrame) -> DataFrame:
        if isinstance(rejected, DataFrame):
            return rejected.select("topic", "partition", "offset", "reason")
        return batch.spark.createDataFrame([tuple(each) for each in rejected], REJECTED)

    def _write(self, batch: SinkBatch, rejected: DataFrame, topic: str) -> None:
        if not self._is_there:
            self._context.ask(_ensure(self._context.cluster, topic, self._config[_REPLICAS]))
            self._is_there = True
        letters = batch.frame.join(sf.broadcast(rejected), ["topic", "partition", "offset"])
        headers = sf.col("headers")
        if self._config[_WITH_CONTEXT]:
            headers = sf.concat(headers, self._context_headers())
        letters = letters.select(
            "key", "value", "timestamp", headers.cast(_HEADERS).alias("headers"), sf.lit(topic).alias("topic")
        )
        call = self._calls[batch.number] = self._calls.get(batch.number, 0) + 1
        # With a note, though nobody reads it: then the decision is remembered.
        run_job(
            letters,
            self._context.sink_options(letters_id(self._config.name)),
            f"batch-{batch.number}-{call}",
            str(batch.number),
        )

    def _context_headers(self) -> Column:
        said = {
            "topic": sf.col("topic"),
            "partition": sf.col("partition").cast("string"),
            "offset": sf.col("offset").cast("string"),
            "connector.name": sf.lit(self._config.name),
            "task.id": sf.lit("0"),
            "stage": sf.lit("TASK_PUT"),
            "class.name": sf.lit(self._config.given.get(common_settings.CLASS, "")),
            "exception.message": sf.col("reason"),
        }
        return sf.array(
            *(
                sf.struct(sf.lit(_PREFIX + name).alias("key"), column.cast("binary").alias("value"))
                for name, column in said.items()
            )
        )


_REPLICAS: Final = "errors.deadletterqueue.topic.replication.factor"
_WITH_CONTEXT: Final = "errors.deadletterqueue.context.headers.enable"


async def _ensure(cluster: Cluster, topic: str, replicas: int) -> None:
    try:
        await cluster.retried(lambda: cluster.topic(topic))
    except Refused as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    else:
        return
    brokers = len((await cluster.metadata([])).brokers)
    try:
        await create_topic(cluster, topic, partitions=1, replication_factor=min(replicas, brokers))
    except Refused as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
