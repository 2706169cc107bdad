"""The listening side of the simulated network: what `network.listener` and `network.connection` are for real.

Frames of one connection are served in order. An answer that is exclusive holds up what comes behind it, and
answers leave in the order of their requests. A frame's memory is wiped when its handler returns, since the
next read would overwrite the shared buffer of a real connection.
"""

from __future__ import annotations

import errno
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Final

from headrace.core.errors import HeadraceError
from headrace.core.ports import FileRange
from headrace.network.page_cache import PageCache
from headrace.network.response import DelayedResponse, NoResponse, Parts
from headrace.security.principal import ANONYMOUS
from headrace.testing.simulation.network import SimulatedLink, SimulatedNetwork
from headrace.testing.simulation.stream import Segment, Stream
from headrace.testing.simulation.virtual_loop import ProcessLoop

LENGTH_SIZE: Final = 4
MOST_LATE_READ: Final = 0.05


def _serve_nothing(_connection: Any, _frame: memoryview) -> Any:
    raise AssertionError("a frame is served before connections are accepted")


class SimulatedEndpoint:
    """All listeners and connections of one simulated broker; `make_endpoint` of its world."""

    def __init__(
        self,
        network: SimulatedNetwork,
        host: str,
        loop: ProcessLoop,
        threads: Executor | None = None,
        *,
        max_in_flight: int = 64,
        max_connections: int = 2**31 - 1,
        max_connections_per_ip: int = 2**31 - 1,
        on_protocol_error: Callable[[Any, HeadraceError], None] = lambda _connection, _error: None,
        **limits: object,
    ) -> None:
        del limits  # of sockets and buffers
        self.network_between = network
        self.host = host
        self.loop = loop
        self.handler: Callable[[Any, memoryview], Any] = _serve_nothing
        self.page_cache = PageCache(loop, threads)
        self.max_in_flight = max_in_flight
        self.max_connections = max_connections
        self.max_connections_per_ip = max_connections_per_ip
        self.on_protocol_error = on_protocol_error
        self.connections: dict[SimulatedConnection, None] = {}
        self.accepted = 0
        self.refused = 0
        self._per_host: Counter[str] = Counter()
        self._listeners: dict[int, str] = {}
        self._is_accepting = False

    def bind(self, host: str, port: int, listener: str = "") -> int:
        del host  # a simulated host has one address
        network = self.network_between
        port = port or network.free_port()
        if (self.host, port) in network.listening:
            raise OSError(errno.EADDRINUSE, "the port is taken")
        network.listening[self.host, port] = self
        self._listeners[port] = listener
        return port

    def start_accepting(self, handler: Callable[[Any, memoryview], Any]) -> None:
        self.handler = handler
        self._is_accepting = True
        for connection in list(self.connections):
            connection.serve_backlog()

    def adopt(self, link: SimulatedLink, address: tuple[str, int]) -> None:
        """A connection is there. Before `start_accepting` it waits in the kernel, with what it brings."""
        connection = SimulatedConnection(self, link, self._listeners[address[1]])
        link.server = connection
        self.connections[connection] = None
        self._per_host[link.host] += 1
        if (
            len(self.connections) > self.max_connections
            or self._per_host[link.host] > self.max_connections_per_ip
        ):
            self.refused += 1
            connection.close()
            return
        self.accepted += 1

    @property
    def is_accepting(self) -> bool:
        return self._is_accepting

    def forget(self, connection: SimulatedConnection) -> None:
        if self.connections.pop(connection, self) is None:
            self._per_host[connection.peer_host] -= 1

    def stop_listening(self) -> None:
        for port in self._listeners:
            self.network_between.listening.pop((self.host, port), None)
        self._listeners.clear()
        if not self._is_accepting:
            self._close_connections()

    def close(self) -> None:
        self.stop_listening()
        self._close_connections()

    def _close_connections(self) -> None:
        for connection in list(self.connections):
            connection.close()


class SimulatedConnection:
    """What a handler sees of its peer, and the order of requests and answers."""

    __slots__ = (
        "_backlog",
        "_endpoint",
        "_is_late",
        "_link",
        "_outbox",
        "_read",
        "_serving",
        "_slots",
        "_warmed",
        "came_by_token",
        "closed",
        "is_link",
        "listener",
        "on_close",
        "peer_host",
        "principal",
        "rights",
    )

    def __init__(self, endpoint: SimulatedEndpoint, link: SimulatedLink, listener: str) -> None:
        self._endpoint = endpoint
        self._link = link
        self.listener = listener
        self.peer_host = link.host
        self.closed = False
        self.is_link = False
        self.principal = ANONYMOUS
        self.rights = None
        self.came_by_token = False
        self.on_close: Callable[[], None] | None = None
        self._backlog: deque[bytes] = deque()
        self._slots: deque[DelayedResponse] = deque()
        self._outbox: deque[Parts] = deque()
        self._read: list[bytes] = []
        """What was read of the frame that is sent next."""
        self._warmed: FileRange | None = None
        """A range that needs no probe: a thread has brought and verified it."""
        self._is_late = False
        """Something has to be waited for before the next frame can be sent."""
        self._serving = False
        link.up = Stream(endpoint.network_between, link.host, endpoint.host, endpoint.loop, self._receive)

    def _receive(self, segment: Segment) -> None:
        if self.closed:
            return
        if segment is None:
            self.close()
            return
        self._backlog.append(segment)
        self.serve_backlog()

    def serve_backlog(self) -> None:
        if self._serving or not self._endpoint.is_accepting:
            return
        self._serving = True
        try:
            while self._backlog and not self.closed and not self._is_blocked():
                self._serve(self._backlog.popleft())
        finally:
            self._serving = False
        if self._backlog:
            for slot in list(self._slots):
                if slot.on_overtaken is not None:
                    slot.on_overtaken()

    def _is_blocked(self) -> bool:
        if self._is_late or len(self._slots) >= self._endpoint.max_in_flight:
            return True
        return any(slot.exclusive and not slot.is_done for slot in self._slots)

    def _serve(self, frame: bytes) -> None:
        memory = bytearray(frame)
        try:
            answer = self._endpoint.handler(self, memoryview(memory))
        except HeadraceError as error:
            self._endpoint.on_protocol_error(self, error)
            self._send_outbox()
            self.close()
            return
        memory[:] = bytes(len(memory))
        if isinstance(answer, NoResponse):
            return
        if isinstance(answer, list):
            delayed = DelayedResponse(exclusive=False)
            delayed.complete(answer)
        else:
            delayed = answer
        self._slots.append(delayed)
        if not delayed.is_done:
            delayed.when_done(lambda _: self._send_done())
        self._send_done()

    def _send_done(self) -> None:
        if self.closed:
            return
        slots = self._slots
        while slots and slots[0].is_done:
            self._outbox.append(slots.popleft().parts)
        if not self._is_late:
            self._send_outbox()
            self.serve_backlog()

    def _send_outbox(self) -> bool:
        """True when nothing is left to be sent."""
        network = self._endpoint.network_between
        while self._outbox and not self.closed:
            parts = self._outbox[0]
            if (
                len(parts) > 1
                and not self._is_late
                and network.random.random() < network.weather.late_read_chance
            ):
                self._is_late = True
                seconds = network.random.uniform(0.0, MOST_LATE_READ)
                self._endpoint.loop.call_later(seconds, self._send_late)
                return False
            if not self._read_parts(parts):
                return False
            self._outbox.popleft()
            frame, self._read = b"".join(self._read), []
            self._link.down.push(frame[LENGTH_SIZE:])
        return not self.closed

    def _send_late(self) -> None:
        """The ranges are read only now, as by a `sendfile` to a peer that was slow to take them."""
        if self._send_outbox():
            self._is_late = False
            self._send_done()

    def _read_parts(self, parts: Parts) -> bool:
        """False if it cannot be sent, or not yet: what has left memory is verified first, as for real."""
        page_cache = self._endpoint.page_cache
        for part in parts[len(self._read) :]:
            if not isinstance(part, FileRange):
                self._read.append(bytes(part))
                continue
            if part is not self._warmed and not page_cache.is_warm(part):
                self._warmed = part
                self._is_late = True
                page_cache.warm(part, self._on_warmed)
                return False
            try:
                data = part.file.pread(part.length, part.position)
            except OSError:
                data = b""
            if len(data) < part.length:  # it is not there any more
                self.close()
                return False
            self._read.append(data)
        return True

    def _on_warmed(self, is_good: bool) -> None:
        if self.closed:
            return
        if is_good:
            self._send_late()
        else:
            self.close()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._backlog.clear()
        self._outbox.clear()
        slots, self._slots = self._slots, deque()
        for delayed in slots:
            delayed.abandon()
        self._link.down.push(None)
        self._link.forget_server()
        self._endpoint.forget(self)
        if self.on_close is not None:
            self.on_close()
