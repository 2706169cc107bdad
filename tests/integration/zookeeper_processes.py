"""Connections to ZooKeeper as the tests of its faults use them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from headrace.config.zookeeper_address import parse_zookeeper_connect
from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.ports_coordination import SessionState
from tests.unit.coordination.hints import BOUND_SECONDS


@contextlib.asynccontextmanager
async def connected(connect: str, *, session_timeout_ms: int = 6_000) -> AsyncIterator[ZooKeeperCoordination]:
    address = parse_zookeeper_connect(connect)
    assert address is not None
    port = ZooKeeperCoordination(
        address, session_timeout_ms=session_timeout_ms, connection_timeout_ms=int(BOUND_SECONDS * 1000)
    )
    await port.start()
    try:
        yield port
    finally:
        await port.close()


class SessionLog:
    """The states that a session went through, since this was made."""

    def __init__(self, port: ZooKeeperCoordination) -> None:
        self.states: list[SessionState] = []
        self._changed = asyncio.Event()
        port.watch_session(self._on_change)

    def _on_change(self, state: SessionState) -> None:
        self.states.append(state)
        self._changed.set()

    async def until(self, *ending: SessionState, since: int = 0) -> None:
        """Returns once the last states are these, of those that came when there were `since` already."""
        async with asyncio.timeout(BOUND_SECONDS):
            while tuple(self.states[since:][-len(ending) :]) != ending:
                self._changed.clear()
                await self._changed.wait()
