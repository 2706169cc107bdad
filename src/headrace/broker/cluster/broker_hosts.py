"""Whether a peer that says that it is another broker comes from where that broker is.

Nothing is authenticated. So a claim alone earns no memory that is kept for brokers: the peer has to come from
an address of a broker that is registered, and a replica has to name the epoch of its registration. Whoever is
not believed is served all the same, as a client is.

Names are looked up beside the loop, and kept for a while. Until then nobody is believed, which costs a broker
nothing but its precedence for a moment.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.core.tasks import spawn

if TYPE_CHECKING:
    from headrace.network.connection import Connection

LOOKED_UP_AGAIN_SECONDS: Final = 60.0
LOOK_UP_SECONDS: Final = 5.0
MAPPED: Final = "::ffff:"
"""An address of the old kind, as a socket of the new kind tells it."""


class BrokerHosts:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._addresses: dict[str, frozenset[str]] = {}
        """Of each name, as it was last looked up."""
        self._looked_up_at: dict[str, float] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def believe_replica(self, connection: Connection, broker_id: int, broker_epoch: int) -> None:
        """A fetch says that it is that broker's."""
        registration = self._metadata.image.brokers.get(broker_id)
        if registration is not None and registration.epoch == broker_epoch:
            self._believe(connection, [endpoint.host for endpoint in registration.endpoints])

    def believe(self, connection: Connection) -> None:
        """A request came that only brokers send."""
        brokers = self._metadata.image.brokers.values()
        self._believe(connection, [endpoint.host for each in brokers for endpoint in each.endpoints])

    def _believe(self, connection: Connection, hosts: Sequence[str]) -> None:
        peer = connection.peer_host.removeprefix(MAPPED)
        connection.is_link = peer in hosts or any(
            peer in self._addresses_of(host) for host in dict.fromkeys(hosts)
        )

    def _addresses_of(self, host: str) -> frozenset[str]:
        now = self._runtime.clock.monotonic()
        if now - self._looked_up_at.get(host, -LOOKED_UP_AGAIN_SECONDS) >= LOOKED_UP_AGAIN_SECONDS:
            self._looked_up_at[host] = now
            if _is_address(host):
                self._addresses[host] = frozenset((host,))
            elif host not in self._tasks:
                self._tasks[host] = spawn(f"the look-up of {host}", self._look_up(host), self._runtime.loop)
        return self._addresses.get(host, frozenset())

    async def _look_up(self, host: str) -> None:
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                found = await self._runtime.loop.getaddrinfo(host, None)
            self._addresses[host] = frozenset(str(each[4][0]) for each in found)
        except (OSError, NotImplementedError, TimeoutError):
            pass  # the next one who asks after a while has it looked up again
        finally:
            self._tasks.pop(host, None)

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
