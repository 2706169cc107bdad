"""This process as a member of the cluster: it registers, and registers again when its session was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from uuid import UUID

from headrace.broker.cluster import description
from headrace.controller.brokers import BrokerDescription
from headrace.core.ids import BrokerEpoch
from headrace.core.ports_coordination import Coordination

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

Stopped = Literal["clean", "same-boot", "unknown"]


class Membership:
    def __init__(self, broker: Broker, coordination: Coordination) -> None:
        self._broker = broker
        self._coordination = coordination
        self._incarnation = UUID(bytes=broker.random.randbytes(16), version=4)
        self.broker_epoch = BrokerEpoch(-1)
        """The epoch of the last registration of this process; -1 before the first."""

    async def register(self) -> None:
        """Each time is a new incarnation with a new epoch, also if the process is the same."""
        broker = self._broker
        told = self.describe()
        epoch = await self._coordination.register(broker.broker_id, description.encode(told))
        paths = [directory.path for directory in broker.logs.online()]
        await broker.loop.run_in_executor(
            None, description.remember, broker.disk, paths, broker.world.boot_id, epoch
        )
        self.broker_epoch = epoch

    def describe(self) -> BrokerDescription:
        broker = self._broker
        previous, stopped = self._previous()
        return BrokerDescription(
            broker_id=broker.broker_id,
            incarnation_id=self._incarnation,
            endpoints=broker.endpoints,
            rack=broker.config.broker_rack,
            directories=tuple(directory.uuid for directory in broker.logs.online()),
            features=broker.supported_features,
            previous_epoch=previous,
            stopped=stopped,
        )

    def _previous(self) -> tuple[int, Stopped]:
        broker = self._broker
        if self.broker_epoch >= 0:
            return self.broker_epoch, "same-boot"  # this very process: nothing was lost with the session
        if broker.logs.broker_epoch_at_stop >= 0:
            return broker.logs.broker_epoch_at_stop, "clean"
        remembered = description.recall(broker.disk, broker.config.data_directories)
        if remembered is None:
            return -1, "unknown"
        same = bool(remembered.boot_id) and remembered.boot_id == broker.world.boot_id
        return remembered.broker_epoch, "same-boot" if same else "unknown"
