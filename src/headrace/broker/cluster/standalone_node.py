"""A broker that is the whole cluster: always the active controller, the only member, coordinated by its own
disk."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.cluster import description
from headrace.broker.missing_logs import find_missing
from headrace.controller.brokers import BrokerDescription
from headrace.core.errors import HeadraceError, StorageError
from headrace.core.ids import NO_BROKER, BrokerEpoch

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.broker.cluster.controller_duties import MetadataPosition


class StandaloneNode:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.broker_epoch = BrokerEpoch(-1)

    @property
    def controller_id(self) -> int:
        return self._broker.broker_id if self._broker.controller.is_active else NO_BROKER

    @property
    def controller_epoch(self) -> int:
        return self._broker.controller.epoch

    @property
    def is_current(self) -> bool:
        """Nobody could be in its place."""
        return True

    async def start(self) -> None:
        broker = self._broker
        for directory in broker.logs.online():
            # What it writes from now on, no cluster that these directories were in has heard of.
            description.forget(broker.disk, directory.path)
        broker.controller.on_resign(self._on_resign)
        await broker.controller.enter(broker.broker_id)
        missing = find_missing(broker.image, broker.broker_id, broker.logs)
        self.broker_epoch = await broker.controller.register_alone(self._describe(missing.directories))
        broker.hosting.missing = missing.partitions
        broker.hosting.start()

    def _describe(self, missing: tuple[UUID, ...]) -> BrokerDescription:
        broker = self._broker
        return BrokerDescription(
            broker_id=broker.broker_id,
            incarnation_id=UUID(bytes=broker.random.randbytes(16), version=4),
            endpoints=broker.endpoints,
            rack=broker.config.broker_rack,
            directories=(*(directory.uuid for directory in broker.logs.online()), *missing),
            features=broker.supported_features,
        )

    def _on_resign(self, error: HeadraceError) -> None:
        self._broker.give_up(StorageError(f"the metadata log has failed: {error}"))

    async def hand_over(self) -> None:
        """Nobody is there to take over."""

    async def stop(self) -> None:
        await self._broker.controller.stop()

    async def tell_versions(self) -> None:
        """Nobody else knows of them."""

    async def find_address(self, broker_id: int) -> tuple[str, int] | None:
        return self._broker.address_of(broker_id)

    def on_replaced(self, epoch: BrokerEpoch) -> None:
        """Its disk is locked: nobody else can be this broker."""

    def on_metadata_fetch(
        self, broker_id: int, epoch: int, position: MetadataPosition, connection: object
    ) -> None:
        """Nobody else is there to be heard of."""

    def on_disconnect(self, broker_id: int, connection: object) -> None:
        """Nobody else is there to be missed."""
