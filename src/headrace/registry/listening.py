"""A socket that accepts so many connections and no more: each takes a descriptor before anybody knows whose
it is, and with TLS the web server does not even see it before the handshake is over."""

from __future__ import annotations

import resource
import socket
from typing import Any, Final

MOST: Final = 2000
OF_DESCRIPTORS: Final = 2
"""At most this part of what the process may have: half of them."""
OF_ONE: Final = 2
"""One address has at most this part of all connections. A proxy's address has those of all of its users."""


class BoundedListener(socket.socket):
    def __init__(self, family: int, most: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._most = most
        self._accepted: dict[str, list[socket.socket]] = {}

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises BlockingIOError, as where nobody waits, for one too many, which is closed."""
        made, address = super().accept()
        host = str(address[0])
        if len(self._of(host)) >= self._most // OF_ONE or self._whole() >= self._most:
            made.close()
            raise BlockingIOError
        self._accepted.setdefault(host, []).append(made)
        return made, address

    def _of(self, host: str) -> list[socket.socket]:
        """Without those that were closed since."""
        living = [each for each in self._accepted.pop(host, ()) if each.fileno() >= 0]
        if living:
            self._accepted[host] = living
        return living

    def _whole(self) -> int:
        if sum(map(len, self._accepted.values())) >= self._most:
            for host in list(self._accepted):
                self._of(host)
        return sum(map(len, self._accepted.values()))


def listen(host: str, port: int) -> BoundedListener:
    """As `socket.create_server` does it."""
    most = min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // OF_DESCRIPTORS)
    made = BoundedListener(socket.AF_INET6 if ":" in host else socket.AF_INET, most)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if made.family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made
