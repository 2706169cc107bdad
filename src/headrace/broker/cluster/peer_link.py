"""A link to one other broker, opened when it is needed, and again when it broke or the broker has moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.core.ports_network import Link, PeerSilent

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

DIAL_SECONDS: Final = 2.0


class PeerLink:
    __slots__ = ("_address", "_broker", "_broker_id", "_link")

    def __init__(self, broker: Broker, broker_id: int) -> None:
        self._broker = broker
        self._broker_id = broker_id
        self._link: Link | None = None
        self._address: tuple[str, int] | None = None

    async def open(self) -> Link:
        """Raises PeerUnavailable if the broker is not registered, or cannot be reached."""
        address = self._broker.address_of(self._broker_id)
        if address is None:
            raise PeerSilent(f"broker {self._broker_id} is not registered")
        if self._link is None or not self._link.is_open or self._address != address:
            self.close()
            self._link = await self._broker.world.dialer.dial(*address, timeout=DIAL_SECONDS)
            self._address = address
        return self._link

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
