"""Tells the controller of log directories that have died, until it has heard it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

PAUSE_SECONDS: Final = 0.2


class DeadDirectories:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._untold: dict[UUID, None] = {}
        self._task: asyncio.Task[None] | None = None

    def report(self, directory_id: UUID) -> None:
        self._untold[directory_id] = None
        if self._task is None or self._task.done():
            self._task = spawn("dead directories", self._tell())

    async def _tell(self) -> None:
        broker = self._broker
        while self._untold:
            telling = list(self._untold)
            try:
                answer = await broker.channel.request(
                    BrokerHeartbeatRequest(
                        broker_id=broker.broker_id,
                        broker_epoch=broker.broker_epoch,
                        current_metadata_offset=broker.metadata_offset,
                        offline_log_dirs=telling,
                    ),
                    BrokerHeartbeatResponse,
                )
            except HeadraceError:
                answer = BrokerHeartbeatResponse(error_code=-1)
            except Exception as error:  # a mistake of ours: the directory is dead all the same
                broker.log.error(
                    "offline log directory not reported to the controller", error=repr(error), exc_info=error
                )
                answer = BrokerHeartbeatResponse(error_code=-1)
            if answer.error_code == 0:
                for directory_id in telling:
                    del self._untold[directory_id]
            else:
                await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
