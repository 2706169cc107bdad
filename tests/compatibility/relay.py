"""A TCP relay that loses answers: the broker has done its work, and the client cannot know.

It reads whole frames, so that it can tell a Produce request from another. The broker must advertise the
relay's address, or clients would go around it.
"""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import Self

PRODUCE = 0


class AnswerLosingRelay:
    """Loses the answers of the next `lose` Produce requests by cutting the connection instead."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.broker_port = 0
        self.lost = 0
        self._to_lose = 0
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def lose(self, answers: int) -> None:
        with self._lock:
            self._to_lose = answers
            self.lost = 0

    def _start(self, work: object, *arguments: object) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.add(client)
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        try:
            broker = socket.create_connection(("127.0.0.1", self.broker_port))
        except OSError:
            client.close()
            return
        self._sockets.add(broker)
        doomed: set[int] = set()
        self._start(self._answers, broker, client, doomed)
        try:
            while frame := _read_frame(client):
                key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
                with self._lock:
                    if key == PRODUCE and self._to_lose > 0:
                        self._to_lose -= 1
                        doomed.add(correlation_id)
                broker.sendall(frame)
        except OSError:
            pass
        finally:
            _end(client)
            _end(broker)

    def _answers(self, broker: socket.socket, client: socket.socket, doomed: set[int]) -> None:
        try:
            while frame := _read_frame(broker):
                if struct.unpack_from(">i", frame, 4)[0] in doomed:
                    with self._lock:
                        self.lost += 1
                    return
                client.sendall(frame)
        except OSError:
            pass
        finally:
            _end(client)
            _end(broker)

    def close(self) -> None:
        # Closing alone does not wake a thread that waits in accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            _end(one)
        for thread in self._threads:
            thread.join(5)
        for one in self._sockets:
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _read_frame(source: socket.socket) -> bytes:
    """One frame with its length, or nothing at the end of the stream."""
    head = _exactly(source, 4)
    if not head:
        return b""
    return head + _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = source.recv(count - len(data))
        if not more:
            return b""
        data += more
    return bytes(data)
