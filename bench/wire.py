"""The two requests that the bench sends by hand, on a plain socket: no client library in the way."""

from __future__ import annotations

import socket
import struct

METADATA = 3
METADATA_VERSION = 4
CLIENT_ID = b"bench"
_given: set[int] = set()


def _read_exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return bytes(data)


def ask_metadata(connection: socket.socket) -> int:
    """Send Metadata for no topic; return how many brokers the answer lists."""
    header = struct.pack(">hhih", METADATA, METADATA_VERSION, 1, len(CLIENT_ID)) + CLIENT_ID
    no_topics, no_creation = 0, False
    request = header + struct.pack(">i?", no_topics, no_creation)
    connection.sendall(struct.pack(">i", len(request)) + request)
    (length,) = struct.unpack(">i", _read_exactly(connection, 4))
    answer = _read_exactly(connection, length)
    _correlation, _throttle_ms, brokers = struct.unpack_from(">iii", answer)
    return int(brokers)


def connect(port: int, *, timeout_s: float = 10.0) -> socket.socket:
    """A connection over which one request has been answered."""
    connection = socket.create_connection(("127.0.0.1", port), timeout_s)
    try:
        ask_metadata(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def answers(port: int, brokers: int = 1) -> bool:
    """Whether a broker on this port answers Metadata with at least so many brokers."""
    try:
        with socket.create_connection(("127.0.0.1", port), 2.0) as connection:
            return ask_metadata(connection) >= brokers
    except OSError:
        return False


def free_port() -> int:
    """A port that nobody has and that was not given before: brokers of a cluster bind theirs later."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in _given:
            _given.add(port)
            return port
