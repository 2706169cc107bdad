"""Single requests by hand, for what no client library would ever send."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any, Self

from headrace.protocol.headers import request_header_version, response_header_version
from headrace.protocol.message import Message


def request_frame(
    api_key: int, version: int, correlation_id: int, body: bytes, client_id: str = "wire"
) -> bytes:
    name = client_id.encode()
    header = struct.pack(">hhih", api_key, version, correlation_id, len(name)) + name
    if request_header_version(api_key, version) >= 2:
        header += b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


class Wire:
    """One connection. Requests are sent and answered one at a time unless the caller wants otherwise."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", timeout: float = 15) -> None:
        self.socket = socket.create_connection((host, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def send_body(self, api_key: int, version: int, body: bytes) -> int:
        self._correlation_id += 1
        self.socket.sendall(request_frame(api_key, version, self._correlation_id, body))
        return self._correlation_id

    def receive_frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError(f"the broker closed the connection {count - len(data)} bytes early")
            data += more
        return bytes(data)

    def receive_body(self, api_key: int, version: int, correlation_id: int) -> bytes:
        frame = self.receive_frame()
        (found,) = struct.unpack_from(">i", frame)
        assert found == correlation_id, f"answer {found} where {correlation_id} was due"
        at = 4
        if response_header_version(api_key, version) >= 1:
            assert frame[4] == 0, "no tagged field is defined for the response header"
            at = 5
        return frame[at:]

    def ask(self, request: Message, version: int, response: type[Message]) -> Any:
        """Send `request` and decode its answer, which must be consumed to the last byte."""
        key = type(request).API_KEY
        body = self.receive_body(key, version, self.send_body(key, version, request.to_bytes(version)))
        return response.from_bytes(body, version)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
