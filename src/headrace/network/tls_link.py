"""A link between brokers over TLS: what differs where plaintext and ciphertext wait in OpenSSL."""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.client.link import broken
from headrace.core.ports import Buffer
from headrace.network.direct_link import DirectLink
from headrace.network.tls import TlsSocket

READS_PER_EVENT: Final = 16
"""Then others have their turn."""


class TlsLink(DirectLink):
    """Invariant: while ciphertext waits for the socket, the poller watches for room."""

    __slots__ = ("_tls",)

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: TlsSocket, peer: str) -> None:
        super().__init__(loop, sock, peer)
        self._tls = sock
        self._watch_unsent()  # the end of the handshake
        loop.call_soon(self._read_what_waits)

    def _on_readable(self) -> None:
        """The poller does not know of plaintext that OpenSSL has taken from the kernel: read all of it."""
        for _ in range(READS_PER_EVENT):
            super()._on_readable()
            if self._failure is not None or not self._tls.has_more:
                return
        self._loop.call_soon(self._read_what_waits)

    def _read_what_waits(self) -> None:
        if self._failure is None and self._tls.has_more:
            self._on_readable()

    def _write(self, frame: Buffer) -> None:
        super()._write(frame)
        self._watch_unsent()

    def _on_writable(self) -> None:
        super()._on_writable()
        self._watch_unsent()

    def _watch_unsent(self) -> None:
        """What was accepted may still wait as ciphertext."""
        if self._failure is not None or self._is_writing:
            return
        try:
            is_sent = self._tls.flush()
        except OSError as error:
            self._fail(broken(self.peer, error))
            return
        if not is_sent:
            self._is_writing = True
            self._poller.add_writer(self._descriptor, self._on_writable)
