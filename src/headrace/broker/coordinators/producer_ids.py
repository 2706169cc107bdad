"""Producer ids, handed out from blocks that the controller grants to this broker."""

from __future__ import annotations

import asyncio

from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.requests.in_flight import InFlightRequests
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import CoordinatorLoading, NotController
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from headrace.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

# A refused producer asks again after half a second or more; a controller moves faster than that.
WAIT_SECONDS = 10.0
RETRY_SECONDS = 0.05


class ProducerIds:
    """Invariant: no id is handed out twice, also across restarts: what is left of a block is forgotten."""

    def __init__(
        self, runtime: Runtime, node: BrokerLifecycle, channel: ControllerChannel, in_flight: InFlightRequests
    ) -> None:
        self._runtime = runtime
        self._node = node
        self._channel = channel
        self._in_flight = in_flight
        self._next = 0
        self._end = 0
        self._asking = asyncio.Lock()

    async def next(self) -> int:
        """Waits while no controller is active. Raises CoordinatorLoading when that takes too long."""
        async with self._asking:
            if self._next == self._end:
                block = await self._granted()
                self._next = block.producer_id_start
                self._end = block.producer_id_start + block.producer_id_len
            producer_id = self._next
            self._next += 1
            return producer_id

    async def _granted(self) -> AllocateProducerIdsResponse:
        deadline = self._runtime.loop.time() + WAIT_SECONDS
        while True:
            request = AllocateProducerIdsRequest(
                broker_id=self._runtime.broker_id, broker_epoch=self._node.broker_epoch
            )
            try:
                # A grant whose answer is lost is forgotten, like the rest of a block.
                block = await self._channel.request(request, AllocateProducerIdsResponse)
                if not block.error_code:
                    return block
                reason = ErrorCode(block.error_code).name
            except (NotController, PeerUnavailable) as error:
                reason = str(error)
            if self._runtime.loop.time() >= deadline or self._in_flight.is_draining:
                raise CoordinatorLoading(f"the controller grants no producer ids: {reason}")
            await asyncio.sleep(RETRY_SECONDS)
