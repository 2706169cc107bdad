"""What a job stands on while it is under fire: three brokers and a Spark cluster, all of processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.broker_process import Place
from tests.chaos.apache_kafka_cluster import ApacheKafkaCluster
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.cluster_process import ClusterProcess, HeadraceCluster
from tests.directories.object_store import ObjectStore, running_object_store
from tests.spark import processes
from tests.spark.standalone import Standalone
from tests.zookeeper_server import CACHE

#: A record is acknowledged when two of three have it; groups and transactions are kept three times as well.
_PROPERTIES: Final = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.create.topics.enable": "false",
}
BROKERS: Final[dict[str, type[ClusterProcess]]] = {"headrace": HeadraceCluster, "kafka": ApacheKafkaCluster}
_REPLICAS: Final = ((1, 2, 3), (2, 3, 1), (3, 1, 2))


class Field:
    """Shared by rounds: each has topics and directories of its own."""

    def __init__(self, directory: Path, *, brokers: str = "headrace", is_tiered: bool = False) -> None:
        self.directory = directory
        os.environ.setdefault("HEADRACE_ZOOKEEPER_CLASSPATH", f"{CACHE}/*")
        self._stack = contextlib.ExitStack()
        self.store: ObjectStore | None = None
        properties, place = _PROPERTIES, Place()
        if is_tiered:
            self.store = self._stack.enter_context(running_object_store())
            properties, place = (
                {**properties, **broker_properties(self.store)},
                Place(environment=ENVIRONMENT),
            )
        self.brokers = BROKERS[brokers](directory / "brokers", 3, properties, places=[place] * 3)
        self.spark = Standalone(directory / "spark")
        self._topics: list[str] = []

    @property
    def bootstrap(self) -> str:
        return self.brokers.bootstrap

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> str:
        replicas = [_REPLICAS[index % len(_REPLICAS)] for index in range(partitions)]
        self.brokers.create_topic(name, replicas, {"min.insync.replicas": "2", **(settings or {})})
        self._topics.append(name)
        return name

    def kill_executor(self, which: int) -> bool:
        """False if there is none to kill."""
        running = self.spark.executors()
        if running:
            processes.kill([running[which % len(running)]])
        return bool(running)

    def kill_broker(self, which: int, down_seconds: float) -> int:
        """Starts it again after a while. Only one is away at a time: two must hold on."""
        for topic in self._topics:
            self.brokers.wait_in_sync(topic, 120)
        number = list(self.brokers.brokers)[which % len(self.brokers.brokers)]
        self.brokers.kill(number)
        time.sleep(down_seconds)
        self.brokers.restart(number)
        return number

    def kill_store(self, down_seconds: float) -> None:
        assert self.store is not None
        self.store.stop()
        time.sleep(down_seconds)
        self.store.start()

    def calm(self) -> None:
        """Before a round: nothing of the last one runs, and every broker is there."""
        processes.wait_until(lambda: not self.spark.executors(), 120, "the executors of the last round end")
        self.brokers.wait_whole(120)
        self._topics.clear()

    def __enter__(self) -> Self:
        with self._stack as building:
            building.enter_context(self.brokers)
            building.enter_context(self.spark)
            self._stack = building.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
