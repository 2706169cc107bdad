"""A connection over TLS: what differs where plaintext waits in OpenSSL, and where ranges of files are copied.

The poller reports what the kernel has, and TLS takes more from it than one request. So a connection that
stops before all is read comes back by itself, and one that may read again does not wait for the poller.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from headrace.core.ports import FileRange
from headrace.network.connection import Connection
from headrace.network.outbox import Outbox
from headrace.network.partial_frame import PartialFrame
from headrace.network.response import Part
from headrace.network.tls import ENCRYPTED_BYTES, TlsSocket

if TYPE_CHECKING:
    from headrace.network.listener import Endpoint

BEHIND_BYTES: Final = 1024
"""Read behind an answer that blocks, for the case that it is the peer's goodbye."""
_plaintext: Final = memoryview(bytearray(ENCRYPTED_BYTES))
"""Of one call: a part of a file on its way into OpenSSL. All connections share it."""


class TlsConnection(Connection):
    __slots__ = ("_tls",)

    def __init__(self, endpoint: Endpoint, sock: TlsSocket, peer_host: str, listener: str = "") -> None:
        super().__init__(endpoint, sock, peer_host, listener)
        self._tls = sock
        self._outbox = TlsOutbox(sock, endpoint.poller, endpoint.page_cache, self.meter, self._on_writable)
        self._go_on_reading()  # the first request may have come with the end of the handshake

    def _read(self) -> None:
        super()._read()
        self._go_on_reading()

    def _read_once(self) -> bool:
        more = super()._read_once()
        return more or (self._tls.has_more and self._reading and not self.closed)

    def _go_on_reading(self) -> None:
        if self._tls.has_more and self._reading and not self._blocked and not self.closed:
            self._endpoint.loop.call_soon(self._read_what_waits)

    def _read_what_waits(self) -> None:
        if self._reading and not self._blocked and not self.closed:
            self._on_readable()

    def _read_carefully(self) -> bool:
        """Nobody can look into a record before it is taken: read the length of the frame, and no more."""
        self._partial = PartialFrame(self._memory, self._endpoint.buffers)
        return True

    def _hold_back(self) -> None:
        """The peer's goodbye is a record like any other: only who reads it knows that the peer has gone."""
        if self._partial is None and not self._backlog:
            view = self._endpoint.buffers.shared_view[:BEHIND_BYTES]
            count = self._tls.recv_into(view)
            self.meter.bytes_in += count
            self._backlog = bytes(view[:count])
            self._memory.keep(count)
            hung_up = count == 0
        else:
            hung_up = self._tls.is_hung_up()
        if hung_up:
            self.close()
        elif self._reading:
            self._stop_reading()
            self._overtake()

    def resume_reading(self) -> None:
        super().resume_reading()
        self._go_on_reading()


class TlsOutbox(Outbox):
    """Invariant: it is not empty while ciphertext waits for the socket."""

    __slots__ = ("_tls",)

    def __init__(self, sock: TlsSocket, poller: Any, page_cache: Any, meter: Any, on_ready: Any) -> None:
        super().__init__(sock, poller, page_cache, meter, on_ready)
        self._tls = sock

    def send_now(self, parts: list[Part]) -> bool:
        self.put(parts)
        return False

    def flush(self) -> bool:
        if self._parts is None:
            return True
        if not super().flush():
            return False
        if self._tls.flush():
            return True
        self._parts = deque()
        return self._wait_for_socket()

    def _copy_range(self, part: FileRange) -> int:
        """As the plaintext outbox does, by way of OpenSSL."""
        sent = 0
        source = part.file.fileno()
        while sent < part.length:
            chunk = _plaintext[: min(part.length - sent, ENCRYPTED_BYTES)]
            count = os.preadv(source, [chunk], part.position + sent)
            if not count:
                raise OSError("a file range ended early")
            try:
                taken = self._tls.send(chunk[:count])
            except BlockingIOError:
                break
            sent += taken
            self._meter.bytes_out += taken
            if taken < count:
                break
        return sent
