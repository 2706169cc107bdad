"""Three brokers, each with a proxy of its own before the one store."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.broker_process import HEADRACE, BrokerProcess, Place
from tests.cluster.tier_fire.clients import PARTITIONS, PLAIN
from tests.cluster.tiered_store import ENVIRONMENT, broker_properties
from tests.cluster_process import HeadraceCluster, eventually
from tests.directories.object_store import ObjectStore, running_object_store
from tests.store_proxy import StoreProxy

TIERED = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "120000",
    "local.retention.bytes": "300000",
    "min.insync.replicas": "2",
}
PROPERTIES = {
    "zookeeper.session.timeout.ms": "4000",
    "headrace.tier.cache.bytes": str(8 * 1024 * 1024),
    "remote.log.manager.task.interval.ms": "500",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
PATIENCE_SECONDS = 300


class Field:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self.store: ObjectStore
        self.cluster: HeadraceCluster
        self.proxies: dict[int, StoreProxy] = {}
        self.prefix = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.store = stack.enter_context(running_object_store())
            properties = broker_properties(self.store)
            self.prefix = properties["headrace.tier.url"].removeprefix("s3://").partition("/")[2]
            for number in (1, 2, 3):
                self.proxies[number] = stack.enter_context(StoreProxy(self.store.port))
            places = [Place(environment=ENVIRONMENT)] * 3
            self.cluster = HeadraceCluster(self._directory, 3, {**properties, **PROPERTIES}, places=places)
            self.cluster.adapt = self._behind_proxy
            stack.enter_context(self.cluster)
            for topic, partitions in PARTITIONS.items():
                replicas = [[(n + k) % 3 + 1 for k in range(3)] for n in range(partitions)]
                self.cluster.create_topic(topic, replicas, configs=TIERED)
            self._stack = stack.pop_all()
        return self

    def _behind_proxy(self, broker: BrokerProcess) -> None:
        broker.properties["headrace.tier.endpoint"] = self.proxies[broker.broker_id].endpoint

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def numbers(self) -> list[int]:
        return sorted(self.cluster.brokers)

    def folder_of(self, partition: int) -> str:
        """As it stands in the paths of requests."""
        path = self.cluster.brokers[1].log_dir / f"{PLAIN}-{partition}" / "partition.metadata"
        topic_id = path.read_text().split("topic_id: ")[1].split()[0]
        return f"/{topic_id}/{partition}/"

    def wait_in_sync(self) -> None:
        for topic in PARTITIONS:
            self.cluster.wait_in_sync(topic, PATIENCE_SECONDS)

    def status(self) -> list[dict[str, Any]]:
        command = [str(HEADRACE), "tier", "status", "--bootstrap", self.cluster.bootstrap, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise OSError(done.stderr)
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    def wait_tiered(self) -> None:
        """Until little is on the disks only."""

        def nearly() -> bool:
            rows = self.status()
            return len(rows) == sum(PARTITIONS.values()) and all(
                0 < row["local_start"] <= row["tiered_end"] and row["end"] - row["tiered_end"] < 2000
                for row in rows
            )

        eventually(nearly, PATIENCE_SECONDS, "nearly all of it is in the store")

    def kill_all(self) -> None:
        for number in self.numbers:
            self.cluster.kill(number)
        for number in self.numbers:
            self.cluster.restart(number, wait=False)
        for number in self.numbers:
            self.cluster.brokers[number].wait_ready()
        self.wait_in_sync()
        time.sleep(1)
