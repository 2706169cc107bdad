"""A socket that speaks TLS, with the few calls of a socket that connections make.

OpenSSL works in memory (`ssl.MemoryBIO`) and never touches the descriptor: the poller, `MSG_PEEK` and the
options of the socket stay ours, and one `recv` brings many records. The poller does not see what waits inside
OpenSSL. So whoever reads asks `has_more` before it waits for the poller, and whoever writes asks `flush`
whether everything that was accepted has left.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from headrace.core.ports import Buffer
from headrace.security.principal import Principal

RECEIVED_BYTES: Final = 128 * 1024
"""Taken from the socket at a time, when the reader has room for less."""
ENCRYPTED_BYTES: Final = 256 * 1024
"""Encrypted before the socket has to take some."""
MAX_UNASKED_BYTES: Final = 64 * 1024
"""What OpenSSL may have to say by itself (answers to key updates) before the peer has to read it."""


class TlsSettings(NamedTuple):
    """Of one listener."""

    context: ssl.SSLContext
    principal_of: Callable[[TlsSocket], Principal]
    """Who the peer is by its certificate. HeadraceError: it may not connect."""


_ciphertext: Final = memoryview(bytearray(RECEIVED_BYTES))
"""Of one call. All connections share it: they live on one loop, and a call leaves nothing in it."""


class TlsSocket:
    """Invariant: ciphertext that the socket did not take is sent before anything else is encrypted."""

    __slots__ = ("_has_ended", "_incoming", "_outgoing", "_sock", "_tls", "_unsent", "has_more")

    def __init__(
        self, sock: socket.socket, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        """After the handshake. The peer may have sent its first request with the end of it."""
        self._sock = sock
        self._tls: Any = tls  # typeshed does not know that `read` fills a buffer
        self._incoming = incoming
        self._outgoing = outgoing
        self._unsent: memoryview | None = None
        self._has_ended = False
        self.has_more = True
        """There may be plaintext that the poller does not know of."""

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def version(self) -> str | None:
        version: str | None = self._tls.version()
        return version

    def peer_certificate(self) -> bytes | None:
        """In DER, if the peer has shown one that is trusted."""
        certificate: bytes | None = self._tls.getpeercert(binary_form=True)
        return certificate

    # --- in ---------------------------------------------------------------------------------------------

    def recv_into(self, buffer: Buffer) -> int:
        """Fill the buffer with what is there. 0 at the end, BlockingIOError if there is nothing."""
        if self._has_ended:
            return 0
        view = memoryview(buffer)
        wanted, count = len(view), 0
        is_drained = needs_more = False
        self.has_more = True
        while count < wanted:
            if needs_more or not (self._tls.pending() or self._incoming.pending):
                received = -1 if is_drained else self._receive()
                if received < 0:
                    self.has_more = False
                    break
                is_drained = 0 < received < RECEIVED_BYTES  # the poller tells of what comes after that
                needs_more = False
            try:
                got = self._tls.read(wanted - count, view[count:])
            except ssl.SSLWantReadError:  # a part of a record
                needs_more = True
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                got = 0
            if not got:
                self._has_ended = True
                return count  # what came before the end counts; the next call says that it is over
            count += got
        if self._outgoing.pending:
            self._answer_unasked()
        if not count:
            raise BlockingIOError
        return count

    def _receive(self) -> int:
        """Take ciphertext from the socket: how much, 0 at the end, -1 if there is none now."""
        try:
            received = self._sock.recv_into(_ciphertext)
        except (BlockingIOError, InterruptedError):
            return -1
        if received:
            self._incoming.write(_ciphertext[:received])
        else:
            self._incoming.write_eof()
        return received

    def is_hung_up(self) -> bool:
        """Whether the peer has closed the connection, without taking what it has sent before."""
        return not self._sock.recv(1, socket.MSG_PEEK)

    def _answer_unasked(self) -> None:
        if self._outgoing.pending > MAX_UNASKED_BYTES:
            raise OSError("the peer asks for keys again and again, and does not read")
        self.flush()

    # --- out --------------------------------------------------------------------------------------------

    def send(self, data: Buffer) -> int:
        """How much of it was encrypted: that will be sent in any case. BlockingIOError if nothing was."""
        if not self.flush():
            raise BlockingIOError
        view = memoryview(data)
        count = 0
        while count < len(view):
            count += self._encrypt(view[count : count + ENCRYPTED_BYTES])
            if not self.flush():
                break
        return count

    def sendmsg(self, parts: list[Buffer], _ancillary: object = (), _flags: int = 0) -> int:
        """Small parts share a record, and a call."""
        return self.send(b"".join(parts))

    def _encrypt(self, data: memoryview) -> int:
        count = 0
        while count < len(data):  # a record at a time
            count += self._tls.write(data[count:])
        return count

    def flush(self) -> bool:
        """Send the ciphertext that is there. True if the socket has taken all of it."""
        if self._unsent is None:
            if not self._outgoing.pending:
                return True
            self._unsent = memoryview(self._outgoing.read())
        while self._unsent:
            try:
                sent = self._sock.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return False
            self._unsent = self._unsent[sent:]
        self._unsent = None
        return not self._outgoing.pending or self.flush()

    def close(self) -> None:
        """Say goodbye if the socket takes it, so that the peer can tell the end from a cut."""
        try:
            if self._unsent is None:
                self._tls.unwrap()
        except (ssl.SSLError, OSError, ValueError):
            pass
        try:
            self.flush()
        except OSError:
            pass
        self._sock.close()
