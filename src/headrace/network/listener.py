"""Listening sockets, and what the connections of one broker share: limits, buffers, the idle sweep."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from headrace.core.errors import HeadraceError, NotReady
from headrace.core.memory import MemoryShare, unlimited
from headrace.core.timers import Timer, TimerQueue
from headrace.metrics.registry import ListenerMetrics
from headrace.network.buffers import BufferPool
from headrace.network.connection import Connection, FrameHandler
from headrace.network.event_loop import deferrer_of, poller_of
from headrace.network.page_cache import PageCache
from headrace.network.request_memory import RequestMemory
from headrace.network.response import Response
from headrace.network.tls import TlsSettings, TlsSocket
from headrace.network.tls_connection import TlsConnection
from headrace.network.tls_handshake import Handshakes
from headrace.network.unsent_answers import UnsentAnswers

TICK_SECONDS: Final = 1.0
ACCEPTS_PER_EVENT: Final = 64
ACCEPT_RETRY_SECONDS: Final = 0.1
UNLIMITED: Final = 2**31 - 1


def _serve_nothing(_connection: Connection, _frame: memoryview) -> Response:
    raise NotReady("this broker accepts no connections yet")


class Endpoint:
    """All listeners and connections of one broker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: ThreadPoolExecutor,
        *,
        max_frame_bytes: int,
        max_in_flight: int = 64,
        max_connections: int = UNLIMITED,
        max_connections_per_ip: int = UNLIMITED,
        max_idle_seconds: float = 600.0,
        requests: MemoryShare | None = None,
        answers: MemoryShare | None = None,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        backlog: int = 50,
        meter: Callable[[str], ListenerMetrics] = lambda _listener: ListenerMetrics(),
        on_protocol_error: Callable[[Connection, HeadraceError], None] = lambda _connection, _error: None,
        on_failed_handshake: Callable[[str, str, str], None] = lambda _host, _listener, _reason: None,
    ) -> None:
        self.loop = loop
        self.poller = poller_of(loop)
        self.defer = deferrer_of(loop)
        self.handler: FrameHandler = _serve_nothing
        self.max_frame_bytes = max_frame_bytes
        self.max_in_flight = max_in_flight
        self.buffers = BufferPool()
        self.request_memory = RequestMemory(requests or unlimited("requests"), max_frame_bytes)
        self.unsent = UnsentAnswers(answers or unlimited("answers"))
        self.page_cache = PageCache(loop, threads)
        self.on_protocol_error = on_protocol_error
        self.on_failed_handshake = on_failed_handshake
        self.on_connected: Callable[[Connection], None] = lambda _connection: None
        """Told before the first request is read: gives the connection its rights, or has it authenticated."""
        self.delay_of: Callable[[str, str], float] = lambda _host, _listener: 0.0
        """By host and listener: 0, or the seconds after which a connection over its quota is closed."""
        self._held: set[socket.socket] = set()
        """Connections over their quota, until they are closed."""
        self.tick = 0
        self.connections: set[Connection] = set()
        self.accepted = 0
        self.refused = 0
        self._per_host: Counter[str] = Counter()
        self._listening: dict[socket.socket, str] = {}
        self.tls: dict[str, TlsSettings] = {}
        """Of the listeners that speak it, by their names. A reload puts others in their place."""
        self.handshakes = Handshakes(loop, self.poller)
        self.max_connections = max_connections
        self.max_connections_per_ip = max_connections_per_ip
        self._backlog = backlog
        self.meter = meter
        self._max_idle_ticks = max_idle_seconds / TICK_SECONDS
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self._timers = TimerQueue(loop)
        self._timer: Timer | None = self._timers.after(TICK_SECONDS, "a tick of a listener", self._on_tick)

    def bind(self, host: str, port: int, listener: str = "") -> int:
        """Take host:port, 0 for a free port, and return the port. Peers wait until `start_accepting`."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self._receive_buffer_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
            sock.setblocking(False)
            sock.bind((host, port))
            sock.listen(self._backlog)
        except OSError:
            sock.close()
            raise
        self._listening[sock] = listener
        bound: int = sock.getsockname()[1]
        return bound

    def start_accepting(self, handler: FrameHandler) -> None:
        self.handler = handler
        for sock in self._listening:
            self._resume_accepting(sock)

    def _on_acceptable(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_EVENT):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._pause_accepting(listening)
                    return
                raise
            self._adopt(sock, address[0], self._listening[listening])

    def _pause_accepting(self, listening: socket.socket) -> None:
        """Out of descriptors: serve those who are here; new ones wait in the backlog for a moment."""
        self.refused += 1
        self.loop.remove_reader(listening.fileno())
        self._timers.after(ACCEPT_RETRY_SECONDS, "accepting again", lambda: self._resume_accepting(listening))

    def _resume_accepting(self, listening: socket.socket) -> None:
        if listening in self._listening:
            self.loop.add_reader(listening.fileno(), self._on_acceptable, listening)

    def _adopt(self, sock: socket.socket, host: str, listener: str) -> None:
        if (
            len(self.connections) + len(self.handshakes) + len(self._held) >= self.max_connections
            or self._per_host[host] >= self.max_connections_per_ip
        ):
            self.refused += 1
            sock.close()
            return
        delay = self.delay_of(host, listener)
        if delay > 0:
            self._held.add(sock)
            self._timers.after(delay, "the end of a connection over its quota", partial(self._drop, sock))
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        self.accepted += 1
        self._per_host[host] += 1
        tls = self.tls.get(listener)
        if tls is None:
            self._connected(Connection(self, sock, host, listener))
        else:
            self._shake_hands(sock, host, listener, tls)

    def _drop(self, sock: socket.socket) -> None:
        self.refused += 1
        self._held.discard(sock)
        sock.close()

    def _shake_hands(self, sock: socket.socket, host: str, listener: str, tls: TlsSettings) -> None:
        def on_done(done: TlsSocket) -> None:
            try:
                principal = tls.principal_of(done)
            except HeadraceError as error:
                done.close()
                on_failed(str(error))
                return
            connection = TlsConnection(self, done, host, listener)
            connection.principal = principal
            self._connected(connection)

        def on_failed(reason: str) -> None:
            self._release_host(host)
            if reason:
                self.on_failed_handshake(host, listener, reason)

        self.handshakes.begin(sock, host, tls.context, on_done, on_failed)

    def _connected(self, connection: Connection) -> None:
        self.connections.add(connection)
        self.on_connected(connection)

    def forget(self, connection: Connection) -> None:
        self.connections.discard(connection)
        connection.meter.closed()
        self._release_host(connection.peer_host)

    def _release_host(self, host: str) -> None:
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]

    def _on_tick(self) -> None:
        self.tick += 1
        self._timer = self._timers.after(TICK_SECONDS, "a tick of a listener", self._on_tick)
        self.close_overdue()
        self.handshakes.end_overdue()
        if self.tick % 10 == 0:
            oldest = self.tick - self._max_idle_ticks
            for connection in [c for c in self.connections if c.active_tick < oldest]:
                connection.close()

    def close_overdue(self) -> None:
        """Frames that were begun and do not get on, while others wait for the memory that they hold."""
        for claim in self.request_memory.overdue(self.tick):
            self.request_memory.share.refusals += 1
            claim.holder.on_overdue()

    def stop_listening(self) -> None:
        for sock in self._listening:
            self.loop.remove_reader(sock.fileno())
            sock.close()
        self._listening.clear()

    def close(self) -> None:
        self.stop_listening()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.handshakes.close()
        for sock in list(self._held):
            self._drop(sock)
        for connection in list(self.connections):
            connection.close()
