"""Producer ids, handed out from blocks that the controller grants to this broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.core.errors import NotController
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from headrace.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class ProducerIds:
    """Invariant: no id is handed out twice, also across restarts: what is left of a block is forgotten."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._next = 0
        self._end = 0
        self._asking = asyncio.Lock()

    async def next(self) -> int:
        """Raises a retriable error if the controller cannot be asked now."""
        async with self._asking:
            if self._next == self._end:
                block = await self._broker.channel.request(
                    AllocateProducerIdsRequest(
                        broker_id=self._broker.broker_id, broker_epoch=self._broker.broker_epoch
                    ),
                    AllocateProducerIdsResponse,
                )
                if block.error_code:
                    name = ErrorCode(block.error_code).name
                    raise NotController(f"the controller grants no producer ids: {name}")
                self._next = block.producer_id_start
                self._end = block.producer_id_start + block.producer_id_len
            producer_id = self._next
            self._next += 1
            return producer_id
