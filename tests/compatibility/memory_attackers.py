"""Peers that make a broker hold memory for them, and a neighbour that wants to be served meanwhile."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from uuid import uuid4

from tests.broker_process import BrokerProcess
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient

MB = 1 << 20
CHUNK = bytes(256 * 1024)


def connect(broker: BrokerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), 30)


@contextmanager
def connections(broker: BrokerProcess, count: int) -> Iterator[list[socket.socket]]:
    held = [connect(broker) for _ in range(count)]
    try:
        yield held
    finally:
        for one in held:
            one.close()


def peak_bytes(broker: BrokerProcess) -> int:
    """The most that the process has ever had in memory."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def announced(size: int) -> bytes:
    return struct.pack(">i", size)


def push(senders: Iterable[socket.socket], each: int, stop: Callable[[], bool]) -> dict[socket.socket, int]:
    """Send `each` bytes by every connection, as far as the broker takes them. Ends when all are sent, when
    `stop` says so, or when no connection has taken anything for two seconds. Returns what was left."""
    left = dict.fromkeys(senders, each)
    with selectors.DefaultSelector() as selector:
        for one in left:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_WRITE)
        while selector.get_map() and not stop():
            ready = selector.select(2.0)
            if not ready:
                break
            for key, _ in ready:
                one = cast(socket.socket, key.fileobj)
                try:
                    left[one] -= one.send(CHUNK[: left[one]])
                except BlockingIOError:
                    continue
                except OSError:
                    left[one] = -1
                if left[one] <= 0:
                    selector.unregister(one)
    return left


def neighbour_is_served(broker: BrokerProcess, *, count: int = 5, size: int = 200_000) -> None:
    """A stranger to the attack writes records and reads them back."""
    client = ConfluentClient(broker.bootstrap)
    topic = f"neighbour-{uuid4()}"
    client.create_topic(topic)
    values = [bytes([number]) * size for number in range(count)]
    client.produce(topic, [NewRecord(value) for value in values])
    read = client.consume(topic, count, timeout_ms=60_000)
    assert [record.value for record in read] == values


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
