"""How a broker takes part: in a cluster, or as the only one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol
from uuid import UUID

from headrace.controller.image import Endpoint
from headrace.core.ids import BrokerEpoch
from headrace.network.connection import Connection

MissingPartitions = Mapping[tuple[UUID, int], str]
"""Logs that are not to be made anew (topic id, partition), and why: their disk may not be here."""
StartHosting = Callable[[MissingPartitions], None]


class MetadataPosition(NamedTuple):
    """How far a broker is with the metadata."""

    applied: int
    """Everything below it is in its image."""
    checkpointed: int
    """Everything below it is in a checkpoint on its disk."""


class BrokerLifecycle(Protocol):
    endpoints: tuple[Endpoint, ...]
    """Where clients and other brokers reach it."""

    @property
    def broker_epoch(self) -> BrokerEpoch: ...

    @property
    def controller_id(self) -> int: ...

    @property
    def controller_epoch(self) -> int: ...

    @property
    def is_current(self) -> bool:
        """Whether this broker would know by now if another had been put in its place for its silence.

        One that stood still, or was cut off, goes on where it was and believes what it knew. What it writes,
        the epochs fence; what it only tells, nothing else would.
        """
        ...

    async def start(self, host: StartHosting) -> None:
        """Returns when this broker is registered and hosts its partitions; `host` begins that."""
        ...

    async def hand_over(self) -> None:
        """See to it that what was decided here last is known elsewhere, before the connections close."""
        ...

    async def stop(self) -> None: ...

    async def tell_versions(self) -> None:
        """The log directories have moved on: whoever may miss that later is told."""
        ...

    async def find_address(self, broker_id: int) -> tuple[str, int] | None: ...

    def on_replaced(self, epoch: BrokerEpoch) -> None: ...

    def on_metadata_fetch(
        self, broker_id: int, epoch: int, position: MetadataPosition, connection: Connection
    ) -> None: ...

    def on_disconnect(self, broker_id: int, connection: object) -> None: ...
