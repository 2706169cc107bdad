"""Brokers that this one has just lost sight of: their connections broke a moment ago.

The controller decides within a fraction of a second what became of them. Whoever asks in that moment who
leads would be told the name of the dead, and many clients do not ask again for a second or more. So a
question whose answer would name such a leader waits for the decision, and if it takes too long, the answer
is that there is no leader: then clients ask again soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from functools import partial
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.delta import MetadataDelta

HOLD_SECONDS: Final = 0.5
"""How long an answer waits. Elections take a tenth of it."""
FORGET_SECONDS: Final = 3.0
"""If nobody has decided by then, the sessions will, and that takes longer than anybody should be held."""


class SuspectBrokers:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._lost: dict[int, float] = {}
        self._changed = asyncio.Event()
        metadata.store.subscribe(self.on_delta)

    def __bool__(self) -> bool:
        return bool(self._lost)

    @property
    def brokers(self) -> Container[int]:
        return self._lost

    def lost(self, broker_id: int) -> None:
        """A connection to it broke, or its port refuses."""
        if not self._metadata.is_alive(broker_id):
            return  # decided already
        self._lost[broker_id] = self._runtime.loop.time()
        self._runtime.timers.after(FORGET_SECONDS, "the end of a suspicion", partial(self._forget, broker_id))

    def reached(self, broker_id: int) -> None:
        if self._lost:
            self._drop(broker_id)

    def on_delta(self, delta: MetadataDelta) -> None:
        if self._lost:
            for broker_id in delta.brokers:
                if not self._metadata.is_alive(broker_id):
                    self._drop(broker_id)

    async def settled(self) -> None:
        """Until nobody is suspect any more, or for as long as an answer may wait."""
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                while self._lost:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass

    def _forget(self, broker_id: int) -> None:
        since = self._lost.get(broker_id)
        if since is not None and self._runtime.loop.time() - since >= FORGET_SECONDS:
            self._drop(broker_id)

    def _drop(self, broker_id: int) -> None:
        if self._lost.pop(broker_id, None) is not None:
            self._changed.set()
