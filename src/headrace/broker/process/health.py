"""How a broker is, for whoever decides about its process: alive, and ready."""

from __future__ import annotations

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.reachability import Reachability
from headrace.broker.process.replicas_behind import replicas_behind
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.log.manager import LogManager


class BrokerHealth:
    def __init__(
        self,
        runtime: Runtime,
        logs: LogManager,
        partitions: PartitionTable,
        metadata: MetadataCache,
        reachability: Reachability | None,
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._partitions = partitions
        self._metadata = metadata
        self._reachability = reachability

    def broken(self) -> str | None:
        if self._runtime.failure.done():
            return str(self._runtime.failure.result())
        offline = [directory.path for directory in self._logs.directories if not directory.is_online]
        if offline:
            return f"offline log directories: {', '.join(offline)}"
        if self._partitions.offline:
            return f"offline partitions: {', '.join(map(str, self._partitions.offline))}"
        return None

    def degraded(self) -> str | None:
        reachability = self._reachability
        return None if reachability is None else reachability.noticed

    async def unready(self) -> str | None:
        reachability = self._reachability
        if reachability is not None and (wrong := await reachability.look()):
            return wrong
        broker_id = self._runtime.broker_id
        if not self._metadata.is_alive(broker_id):
            return "this broker is fenced"
        return await replicas_behind(self._metadata.image.topics_by_name.values(), broker_id)
