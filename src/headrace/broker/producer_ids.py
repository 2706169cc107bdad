"""Producer ids, handed out from blocks that the controller grants to this broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.controller.shell import Controller


class ProducerIds:
    """Invariant: no id is handed out twice, also across restarts: what is left of a block is forgotten."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._next = 0
        self._end = 0
        self._asking = asyncio.Lock()

    async def next(self) -> int:
        async with self._asking:
            if self._next == self._end:
                block = await self._controller.allocate_producer_ids()
                self._next, self._end = block.first, block.first + block.length
            producer_id = self._next
            self._next += 1
            return producer_id
