"""One broker: its parts, and its life. `assembly.py` builds it."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from headrace.broker.cluster.controlled_shutdown import leave
from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.coordinators.coordinators import Coordinators
from headrace.broker.replicas.manager import ReplicaManager
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.requests.context import RequestContext, Storage
from headrace.broker.requests.dispatcher import Dispatcher
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.shell import Controller

Start = Callable[[], Awaitable[None] | None]


class Broker:
    __slots__ = (
        "_starts",
        "_stops",
        "context",
        "controller",
        "coordinators",
        "dispatcher",
        "metadata",
        "network",
        "node",
        "partitions",
        "replicas",
        "runtime",
    )

    def __init__(
        self,
        context: RequestContext,
        dispatcher: Dispatcher,
        network: Any,
        starts: Sequence[Start],
        stops: AsyncExitStack,
    ) -> None:
        """`starts` in their order; `stops` backwards. A stop that is asked for ends them without an error, a
        start that fails with it."""
        self.context = context
        self.dispatcher = dispatcher
        self.network = network
        self.runtime: Runtime = context.runtime
        self.metadata: MetadataCache = context.metadata
        self.partitions: PartitionTable = context.partitions
        self.controller: Controller = context.controller
        self.node: BrokerLifecycle = context.node
        self.replicas: ReplicaManager = context.replicas
        self.coordinators: Coordinators = context.coordinators
        self._starts = starts
        self._stops = stops

    @property
    def storage(self) -> Storage:
        return self.context.storage

    async def start(self) -> None:
        """Join the cluster, host the partitions, then let the clients in."""
        try:
            for start in self._starts:
                begun = start()
                if inspect.isawaitable(begun):
                    await begun
        except (Exception, asyncio.CancelledError):
            await self._stops.__aexit__(*sys.exc_info())
            raise

    async def stop(self) -> None:
        """Finish what was begun, sync, and say on disk that the stop was clean."""
        context = self.context
        await leave(self.runtime, self.metadata, self.controller, self.node, context.channel, self.partitions)
        await self.node.hand_over()
        self.network.stop_listening()
        self.coordinators.stop()  # refuses what it holds: a member may wait for others for minutes
        await context.in_flight.drain()  # also refuses what would have to wait from now on
        for delayed in context.fetches.purgatory:
            delayed.on_time()
        await self._stops.aclose()
