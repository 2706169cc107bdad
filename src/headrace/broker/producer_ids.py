"""Producer ids, handed out from blocks that the controller grants to this broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.core.errors import CoordinatorLoading, NotController
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from headrace.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

# A refused producer asks again after half a second or more; a controller moves faster than that.
WAIT_SECONDS = 10.0
RETRY_SECONDS = 0.05


class ProducerIds:
    """Invariant: no id is handed out twice, also across restarts: what is left of a block is forgotten."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
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
        broker = self._broker
        deadline = broker.loop.time() + WAIT_SECONDS
        while True:
            request = AllocateProducerIdsRequest(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)
            try:
                # A grant whose answer is lost is forgotten, like the rest of a block.
                block = await broker.channel.request(request, AllocateProducerIdsResponse)
                if not block.error_code:
                    return block
                reason = ErrorCode(block.error_code).name
            except (NotController, PeerUnavailable) as error:
                reason = str(error)
            if broker.loop.time() >= deadline or broker.dispatcher.is_draining:
                raise CoordinatorLoading(f"the controller grants no producer ids: {reason}")
            await asyncio.sleep(RETRY_SECONDS)
