"""Tells the controller of log directories that have died, until it has heard it."""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.lifecycle import BrokerLifecycle
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

PAUSE_SECONDS: Final = 0.2


class DeadDirectories:
    def __init__(
        self, runtime: Runtime, metadata: MetadataCache, node: BrokerLifecycle, channel: ControllerChannel
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._node = node
        self._channel = channel
        self._untold: dict[UUID, None] = {}
        self._task: asyncio.Task[None] | None = None

    def report(self, directory_id: UUID) -> None:
        self._untold[directory_id] = None
        if self._task is None or self._task.done():
            self._task = spawn("dead directories", self._tell())

    async def _tell(self) -> None:
        while self._untold:
            telling = list(self._untold)
            try:
                answer = await self._channel.request(
                    BrokerHeartbeatRequest(
                        broker_id=self._runtime.broker_id,
                        broker_epoch=self._node.broker_epoch,
                        current_metadata_offset=self._metadata.offset,
                        offline_log_dirs=telling,
                    ),
                    BrokerHeartbeatResponse,
                )
            except HeadraceError:
                answer = BrokerHeartbeatResponse(error_code=-1)
            except Exception as error:  # a mistake of ours: the directory is dead all the same
                self._runtime.log.error(
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
