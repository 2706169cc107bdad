"""Removes expired delegation tokens from the metadata, as the active controller, once in a while.

A token is of no use from the moment in which it expires. This only makes room.
"""

from __future__ import annotations

import asyncio

from headrace.broker.runtime.runtime import Runtime
from headrace.controller.shell import Controller
from headrace.controller.tokens import SWEPT_AT_ONCE
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.core.timers import Timer


class TokenExpiry:
    def __init__(self, runtime: Runtime, controller: Controller, interval_ms: int) -> None:
        self._runtime = runtime
        self._controller = controller
        self._interval = interval_ms / 1000
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._timer = self._runtime.timers.after(self._interval, "the expiry of tokens", self._begin)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _begin(self) -> None:
        self.start()
        if self._controller.is_active and (self._task is None or self._task.done()):
            self._task = spawn("the expiry of tokens", self._remove())

    async def _remove(self) -> None:
        now_ms = self._runtime.clock.wall_ms()
        removed = SWEPT_AT_ONCE
        try:
            while removed == SWEPT_AT_ONCE:
                removed = await self._controller.submit(lambda machine: machine.remove_expired_tokens(now_ms))
        except HeadraceError as error:  # another broker is controller now, or the next look does it
            self._runtime.log.info("expired delegation tokens not removed", error=str(error))
