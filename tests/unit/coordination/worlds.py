"""The places where metadata is committed that the behaviour suite runs against."""

from __future__ import annotations

import asyncio
from typing import Protocol

from headrace.config.zookeeper_address import parse_zookeeper_connect
from headrace.config.zookeeper_security import OPEN, ZooKeeperSecurity
from headrace.coordination.local import LocalCoordination
from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.ports_coordination import Coordination
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.simulation.coordination import SimulatedCoordination
from headrace.testing.simulation.ensemble import SimulatedEnsemble
from tests.unit.coordination.memory_journal import MemoryJournal


class World(Protocol):
    """One cluster's place. `open` connects to it as one process does, so that two can contend."""

    async def open(self) -> Coordination: ...

    async def restart(self) -> None:
        """All processes end and lose their sessions; what was committed stays."""
        ...


class LocalWorld:
    """One process: every controller in it shares the one coordination object."""

    def __init__(self) -> None:
        self._journal = MemoryJournal()
        self._shared = LocalCoordination(self._journal)

    async def open(self) -> LocalCoordination:
        return self._shared

    async def restart(self) -> None:
        self._journal = self._journal.after_power_loss()
        self._shared = LocalCoordination(self._journal, cluster_id=self._shared._cluster_id)


class ZooKeeperWorld:
    """Real servers. Each world is a chroot of its own, each `open` a session of its own."""

    def __init__(
        self, connect: str, *, session_timeout_ms: int = 6_000, security: ZooKeeperSecurity = OPEN
    ) -> None:
        self._security = security
        address = parse_zookeeper_connect(connect)
        assert address is not None
        self._address = address
        self._session_timeout_ms = session_timeout_ms
        self._open: list[ZooKeeperCoordination] = []

    async def open(self) -> ZooKeeperCoordination:
        port = ZooKeeperCoordination(
            self._address,
            session_timeout_ms=self._session_timeout_ms,
            connection_timeout_ms=20_000,
            security=self._security,
        )
        self._open.append(port)
        await port.start()
        return port

    async def restart(self) -> None:
        await self.close()

    async def close(self) -> None:
        ports, self._open = self._open, []
        for port in ports:
            await port.close()


class SimulatedWorld:
    """An ensemble in memory. Each `open` is a session of its own."""

    def __init__(self) -> None:
        self._ensemble = SimulatedEnsemble(asyncio.get_running_loop())

    async def open(self) -> SimulatedCoordination:
        port = SimulatedCoordination(self._ensemble, asyncio.get_running_loop())
        await port.start()
        return port

    async def restart(self) -> None:
        self._ensemble.expire_all()


def batch(base_offset: int, *values: bytes, epoch: int = 0) -> bytes:
    records = [NewRecord(value) for value in values]
    return bytes(encode_batch(records, base_offset=base_offset, leader_epoch=epoch))
