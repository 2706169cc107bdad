"""Links over TCP: the network port, on any asyncio event loop.

A small answer is copied out of the link's receive buffer. One that is larger than what has arrived of it gets
a buffer of its own size, and the rest is received straight into that. Either way the memory is the caller's.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections import deque
from struct import Struct
from typing import Any, Final, Protocol, cast

from headrace.client.tls_failures import odd_length, tls_failure
from headrace.core.ports import Buffer
from headrace.core.ports_network import (
    Link,
    PeerRefused,
    PeerReset,
    PeerSilent,
    PeerUnavailable,
    PeerUntrusted,
)

MAX_FRAME_BYTES: Final = 256 * 1024 * 1024
_LENGTH: Final = Struct(">i")
_LENGTH_SIZE: Final = 4
_SHARED_BYTES: Final = 64 * 1024
_CLOSING_SECONDS: Final = 1.0
"""What was written before a close gets this long to leave."""

_SILENCE: Final = frozenset(
    (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)
)
_KEEPALIVE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)
"""A peer whose host vanished while nothing was asked of it is noticed within a minute."""


class Closable(Protocol):
    def close(self) -> None: ...


class LinkSecurity(Protocol):
    """What becomes of a connection before it is handed out."""

    @property
    def context(self) -> ssl.SSLContext | None: ...

    async def authenticate(self, link: Link, peer: str, timeout: float) -> None:
        """Raises PeerUntrusted."""
        ...


class Awaited(asyncio.Future[memoryview]):
    """An answer that is awaited. Whoever stops waiting for it gives up the link."""

    __slots__ = ("link",)
    link: Closable

    def cancel(self, msg: Any | None = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self.link.close()
        return cancelled


class TcpLink(asyncio.BufferedProtocol):
    """One connection. Answers are matched to requests by their order alone."""

    __slots__ = (
        "_body",
        "_drained",
        "_failure",
        "_filled",
        "_kept",
        "_loop",
        "_lost",
        "_shared",
        "_transport",
        "_waiting",
        "peer",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, peer: str) -> None:
        self.peer = peer
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._failure: PeerUnavailable | None = None
        self._waiting: deque[Awaited] = deque()
        """In the order of the requests."""
        self._shared = memoryview(bytearray(_SHARED_BYTES))
        self._kept = 0
        """Bytes of an incomplete length field at the beginning of `_shared`: at most three."""
        self._body: memoryview | None = None
        """A frame that arrives in pieces, of which `_filled` bytes are there."""
        self._filled = 0
        self._lost = loop.create_future()
        self._drained: asyncio.Future[None] | None = None

    # --- the port ---------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._failure is None

    def send(self, frame: Buffer) -> asyncio.Future[memoryview]:
        self.send_only(frame)
        answer = Awaited(loop=self._loop)
        answer.link = self
        self._waiting.append(answer)
        return answer

    def close(self) -> None:
        """Whoever still waits is told; the socket is gone with the loop's next turn."""
        unanswered = bool(self._waiting)
        self._fail(PeerReset(f"the connection to {self.peer} is closed"))
        transport = self._transport
        if transport is not None and unanswered:
            # Something is wrong with the peer: what is unsent would only keep the socket open.
            transport.abort()

    # --- beyond the port: for requests that have no answer, and for an orderly end ----------------------

    def send_only(self, frame: Buffer) -> None:
        transport = self._transport
        if self._failure is not None or transport is None:
            raise self._failure or PeerReset(f"the connection to {self.peer} is not open")
        transport.write(_LENGTH.pack(len(frame)) + frame)

    async def drain(self) -> None:
        """Until the socket has taken most of what was written."""
        if self._drained is not None:
            await asyncio.shield(self._drained)
        if self._failure is not None:
            raise self._failure

    async def wait_closed(self) -> None:
        """After `close`: until what was written has left and the socket is gone."""
        done, _ = await asyncio.wait((self._lost,), timeout=_CLOSING_SECONDS)
        if not done and self._transport is not None:
            self._transport.abort()
            await self._lost

    # --- what the transport calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  the transport's signature
        body = self._body
        return self._shared[self._kept :] if body is None else body[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        body = self._body
        if body is None:
            self._take_frames(self._kept + nbytes)
            return
        self._filled += nbytes
        if self._filled == len(body):
            self._body = None
            self._deliver(body)

    def eof_received(self) -> None:
        self._fail(PeerReset(f"{self.peer} closed the connection"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(broken(self.peer, exc))
        self._body = None
        self._transport = None
        self._lost.set_result(None)

    def pause_writing(self) -> None:
        self._drained = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    # --- frames -----------------------------------------------------------------------------------------

    def _take_frames(self, end: int) -> None:
        shared = self._shared
        at = 0
        while end - at >= _LENGTH_SIZE:
            length = _LENGTH.unpack_from(shared, at)[0]
            if not 0 < length <= MAX_FRAME_BYTES:
                self._break(f"{self.peer} {odd_length(length)}")
                return
            at += _LENGTH_SIZE
            if length > end - at:
                self._kept = 0
                self._begin_body(length, shared[at:end])
                return
            self._deliver(memoryview(bytes(shared[at : at + length])))
            at += length
        self._kept = end - at
        if self._kept:
            shared[: self._kept] = bytes(shared[at:end])

    def _begin_body(self, length: int, beginning: memoryview) -> None:
        body = memoryview(bytearray(length))
        self._filled = len(beginning)
        body[: self._filled] = beginning
        self._body = body

    def _deliver(self, frame: memoryview) -> None:
        if not self._waiting:
            self._break(f"{self.peer} sent an answer that nobody awaits")
            return
        answer = self._waiting.popleft()
        if not answer.done():
            answer.set_result(frame)

    # --- the end ----------------------------------------------------------------------------------------

    def _break(self, reason: str) -> None:
        self._fail(PeerReset(reason))
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, failure: PeerUnavailable) -> None:
        if self._failure is None:
            self._failure = failure
            if self._transport is not None:
                self._transport.close()
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        waiting, self._waiting = self._waiting, deque()
        for answer in waiting:
            if not answer.done():
                answer.set_exception(self._failure)


class SocketDialer:
    """Connects. What becomes of the socket is for others to say."""

    def __init__(self, *, receive_buffer_bytes: int = -1, security: LinkSecurity | None = None) -> None:
        """`receive_buffer_bytes`: -1 lets the kernel choose, and adapt, the size."""
        self._receive_buffer_bytes = receive_buffer_bytes
        self.security = security
        """None for PLAINTEXT. A reload puts another in its place."""

    async def connect(self, host: str, port: int, *, timeout: float) -> socket.socket:
        """A connected socket that does not block."""
        try:
            async with asyncio.timeout(timeout):
                return await self._connect(asyncio.get_running_loop(), host, port)
        except TimeoutError:
            # Also a TimeoutError of the kernel's own, ETIMEDOUT: it is the same silence.
            raise PeerSilent(f"no answer in {timeout:g} s") from None

    async def _connect(self, loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
        """The first address of the host that takes the connection."""
        failure: PeerUnavailable | None = None
        for family, address in await _addresses(loop, host, port):
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                failure = failure or _unconnected(error)  # this machine lacks the family
                continue
            try:
                self._prepare(sock)
                await loop.sock_connect(sock, address)
                if sock.getsockname() == sock.getpeername():
                    # The kernel chose the very port that nobody listens at, and it met itself.
                    raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody but ourselves is there")
            except OSError as error:
                sock.close()
                if failure is None or isinstance(failure, PeerRefused):
                    # Refused is believed only if every address refuses: then the process is gone.
                    failure = _unconnected(error)
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise failure or PeerSilent(f"{host} has no address")

    def _prepare(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for level, option, value in _KEEPALIVE:
            sock.setsockopt(level, option, value)
        if self._receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)


class TcpDialer(SocketDialer):
    async def dial(self, host: str, port: int, *, timeout: float) -> TcpLink:
        security = self.security
        sock = await self.connect(host, port, timeout=timeout)
        context = None if security is None else security.context
        try:
            link = await self._link(sock, context, host, f"{host}:{port}", timeout)
        except BaseException:
            sock.close()
            raise
        if security is not None:
            try:
                await security.authenticate(link, link.peer, timeout)
            except BaseException:
                link.close()
                raise
        return link

    async def _link(
        self, sock: socket.socket, context: ssl.SSLContext | None, host: str, peer: str, timeout: float
    ) -> TcpLink:
        loop = asyncio.get_running_loop()
        link = TcpLink(loop, peer)
        if context is None:
            await loop.create_connection(lambda: link, sock=sock)
            return link
        try:
            await loop.create_connection(
                lambda: link, sock=sock, ssl=context, server_hostname=host, ssl_handshake_timeout=timeout
            )
        except ConnectionAbortedError:  # so asyncio says that the time is over
            raise PeerSilent(f"TLS was not done after {timeout:g} s") from None
        except OSError as error:
            raise PeerUntrusted(tls_failure(error)) from None
        return link


async def _addresses(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> list[tuple[int, tuple[Any, ...]]]:
    """An address that is written as numbers is not looked up: that would cost a thread."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise PeerSilent(f"{host}: {error.strerror or error}") from None
    return [(family, address) for family, _, _, _, address in found]


def _unconnected(error: OSError) -> PeerUnavailable:
    text = error.strerror or str(error)
    if isinstance(error, ConnectionRefusedError):
        return PeerRefused(text)
    if isinstance(error, ConnectionError):
        return PeerReset(text)
    return PeerSilent(text)


def broken(peer: str, error: Exception | None) -> PeerUnavailable:
    if error is None:
        return PeerReset(f"{peer} closed the connection")
    if isinstance(error, ssl.SSLError):
        return PeerUntrusted(f"{peer} ended TLS: {tls_failure(error)}")
    if isinstance(error, OSError) and error.errno in _SILENCE:
        return PeerSilent(f"{peer} is silent: {error.strerror}")
    return PeerReset(f"the connection to {peer} broke: {error}")
