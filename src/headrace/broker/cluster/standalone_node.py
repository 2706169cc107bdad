"""A broker that is the whole cluster: always the active controller, the only member, coordinated by its own
disk."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.cluster import description
from headrace.broker.cluster.lifecycle import StartHosting
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.missing_logs import find_missing
from headrace.controller.brokers import BrokerDescription
from headrace.controller.image import Endpoint
from headrace.controller.shell import Controller
from headrace.core.errors import HeadraceError, StorageError
from headrace.core.ids import NO_BROKER, BrokerEpoch
from headrace.log.manager import LogManager
from headrace.network.connection import Connection

if TYPE_CHECKING:
    from headrace.broker.cluster.lifecycle import MetadataPosition


class StandaloneNode:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        controller: Controller,
        logs: LogManager,
        endpoints: tuple[Endpoint, ...],
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._controller = controller
        self._logs = logs
        self.endpoints = endpoints
        self.broker_epoch = BrokerEpoch(-1)

    @property
    def controller_id(self) -> int:
        return self._runtime.broker_id if self._controller.is_active else NO_BROKER

    @property
    def controller_epoch(self) -> int:
        return self._controller.epoch

    @property
    def is_current(self) -> bool:
        """Nobody could be in its place."""
        return True

    async def start(self, host: StartHosting) -> None:
        for directory in self._logs.online():
            # What it writes from now on, no cluster that these directories were in has heard of.
            description.forget(self._runtime.disk, directory.path)
        self._controller.on_resign(self._on_resign)
        await self._controller.enter(self._runtime.broker_id)
        missing = find_missing(self._metadata.image, self._runtime.broker_id, self._logs)
        self.broker_epoch = await self._controller.register_alone(self._describe(missing.directories))
        host(missing.partitions)

    def _describe(self, missing: tuple[UUID, ...]) -> BrokerDescription:
        return BrokerDescription(
            broker_id=self._runtime.broker_id,
            incarnation_id=UUID(bytes=self._runtime.random.randbytes(16), version=4),
            endpoints=self.endpoints,
            rack=self._runtime.config.broker_rack,
            directories=(*(directory.uuid for directory in self._logs.online()), *missing),
            features=self._runtime.supported_features,
        )

    def _on_resign(self, error: HeadraceError) -> None:
        self._runtime.give_up(StorageError(f"the metadata log has failed: {error}"))

    async def hand_over(self) -> None:
        """Nobody is there to take over."""

    async def stop(self) -> None:
        await self._controller.stop()

    async def tell_versions(self) -> None:
        """Nobody else knows of them."""

    async def find_address(self, broker_id: int) -> tuple[str, int] | None:
        return self._metadata.address_of(broker_id)

    def on_replaced(self, epoch: BrokerEpoch) -> None:
        """Its disk is locked: nobody else can be this broker."""

    def on_metadata_fetch(
        self, broker_id: int, epoch: int, position: MetadataPosition, connection: Connection
    ) -> None:
        """Nobody else is there to be heard of."""

    def on_disconnect(self, broker_id: int, connection: object) -> None:
        """Nobody else is there to be missed."""
