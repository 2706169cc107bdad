"""A link to one other broker, opened when it is needed, and again when it broke or the broker has moved."""

from __future__ import annotations

from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.core.ports_network import Link, PeerSilent

DIAL_SECONDS: Final = 2.0


class PeerLink:
    __slots__ = ("_address", "_broker_id", "_link", "_metadata", "_runtime")

    def __init__(self, runtime: Runtime, metadata: MetadataCache, broker_id: int) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._broker_id = broker_id
        self._link: Link | None = None
        self._address: tuple[str, int] | None = None

    async def open(self) -> Link:
        """Raises PeerUnavailable if the broker is not registered, or cannot be reached."""
        address = self._metadata.address_of(self._broker_id)
        if address is None:
            raise PeerSilent(f"broker {self._broker_id} is not registered")
        if self._link is None or not self._link.is_open or self._address != address:
            self.close()
            self._link = await self._runtime.environment.dialer.dial(*address, timeout=DIAL_SECONDS)
            self._address = address
        return self._link

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
