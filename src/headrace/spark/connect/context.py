"""What the connectors of one worker share: a session, threads for jobs, and a client for quick questions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

from pyspark.sql import SparkSession

from headrace.client.cluster import Cluster
from headrace.connect.stores import Topics
from headrace.spark.jvm import exit_code
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.sink.options import Options, parse_options

T = TypeVar("T")
DEFAULT_JOBS: Final = 4


class Context:
    """Close it, when no connector runs any more."""

    def __init__(
        self, spark: SparkSession, kafka: Mapping[str, str], topics: Topics, *, jobs: int = DEFAULT_JOBS
    ) -> None:
        """`kafka` has bootstrap.servers, and what security needs."""
        self.spark = spark
        self.kafka = KafkaProperties(kafka)
        self.topics = topics
        self._jobs = ThreadPoolExecutor(jobs, "headrace-connect-job")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="headrace-connect-client", daemon=True)
        self._thread.start()
        self.cluster = Cluster(
            self.kafka.bootstrap, client_id="headrace-connect-runner", security=self.kafka.security()
        )

    def sink_options(self, sink: str) -> Options:
        return parse_options(
            {**self.kafka.options, "sink.id": sink, "decisions.topic": self.topics.offsets}, streaming=False
        )

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """From a connector's thread: a question to the brokers."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def job(self, tag: str, work: Callable[[], T]) -> Future[T]:
        """In one of the few threads that may run Spark jobs at a time."""

        def tagged() -> T:
            spark = self.spark
            spark.addTag(tag)
            try:
                return work()
            finally:
                spark.removeTag(tag)

        return self._jobs.submit(tagged)

    def cancel(self, tag: str) -> None:
        """Ends the jobs that run under it, and nothing else."""
        if self.spark_exit_code() is None:
            self.spark.interruptTag(tag)

    def spark_exit_code(self) -> int | None:
        """Of the Java process; None while it runs."""
        return exit_code(self.spark)

    def close(self) -> None:
        self._jobs.shutdown(wait=True, cancel_futures=True)
        self.ask(self.cluster.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
