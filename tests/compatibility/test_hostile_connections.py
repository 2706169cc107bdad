"""Connections that send garbage, or hardly anything, cost their neighbours nothing and the broker little."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.api_versions_response import ApiVersionsResponse
from tests.broker_process import BrokerProcess, HeadraceProcess
from tests.compatibility.clients.client import NewRecord
from tests.compatibility.clients.confluent import ConfluentClient
from tests.requests import fetch_request
from tests.wire import Wire, request_frame

IDLE_CONNECTIONS = 1000
IDLE_BYTES_EACH = 4096
MB = 1 << 20

Attack = Callable[[int, threading.Event], None]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that no other test uses: its memory and its time are measured."""
    with HeadraceProcess(tmp_path / "broker") as broker:
        yield broker


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 5)


def garbage(port: int, stop: threading.Event) -> None:
    source = random.Random(1)
    while not stop.is_set():
        with contextlib.suppress(OSError), connect(port) as one:
            one.sendall(source.randbytes(source.randrange(1, 5000)))
            one.settimeout(0.2)
            one.recv(100)


def huge_lengths(port: int, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(OSError), connect(port) as one:
            one.sendall(struct.pack(">i", 0x7FFFFFFF) + b"x" * 10_000)
            one.settimeout(0.2)
            one.recv(100)


def promised_and_withheld(port: int, stop: threading.Event) -> None:
    """Each announces a request of 100 MB, the most that is allowed, and sends next to nothing of it."""
    held = []
    for _ in range(300):
        one = connect(port)
        one.sendall(struct.pack(">i", 100 * MB) + b"\0\0\0\x09" + b"x" * 1000)
        held.append(one)
    stop.wait()
    for one in held:
        one.close()


def one_byte_at_a_time(port: int, stop: threading.Event) -> None:
    frames = [request_frame(3, 9, 1, b"\0\0\0\0")] * 40
    held = [connect(port) for _ in frames]
    for position in range(len(frames[0])):
        if stop.wait(1.0 if position else 0.0):
            break
        for one, frame in zip(held, frames, strict=True):
            with contextlib.suppress(OSError):
                one.sendall(frame[position : position + 1])
    for one in held:
        one.close()


def answers_not_read(port: int, stop: threading.Event) -> None:
    """Asks for much, again and again, and never takes an answer."""
    held = []
    body = fetch_request("large").to_bytes(12)
    for _ in range(10):
        one = connect(port)
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for number in range(500):
                one.send(request_frame(1, 12, number, body))
        held.append(one)
    stop.wait()
    for one in held:
        one.close()


def half_open(port: int, stop: threading.Event) -> None:
    held = []
    for _ in range(50):
        one = connect(port)
        one.sendall(request_frame(3, 9, 1, b"\0\0\0\0")[:12])
        one.shutdown(socket.SHUT_WR)
        held.append(one)
    stop.wait()
    for one in held:
        one.close()


ATTACKS: tuple[Attack, ...] = (
    garbage,
    huge_lengths,
    promised_and_withheld,
    one_byte_at_a_time,
    answers_not_read,
    half_open,
)


def latencies(wire: Wire, seconds: float) -> list[float]:
    """Milliseconds of small requests of a neighbour, one after the other."""
    request = ApiVersionsRequest(client_software_name="n", client_software_version="1")
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.perf_counter()
        wire.ask(request, 3, ApiVersionsResponse)
        found.append((time.perf_counter() - start) * 1000)
        time.sleep(0.001)
    return sorted(found)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_fault_25_neighbours_and_memory_are_unharmed(alone: BrokerProcess, attack: Attack) -> None:
    client = ConfluentClient(alone.bootstrap)
    client.create_topic("large")
    client.produce("large", [NewRecord(b"x" * 900_000) for _ in range(10)])
    with Wire(alone.port) as wire:
        latencies(wire, 0.3)
        before = alone.resident_bytes()
        stop = threading.Event()
        attacker = threading.Thread(target=attack, args=(alone.port, stop))
        attacker.start()
        try:
            found = latencies(wire, 2.5)
        finally:
            stop.set()
            attacker.join()
        after = alone.resident_bytes()
        # Two loaded cores stall any process now and then; a harmed neighbour would wait for every request.
        assert found[len(found) // 2] < 20, "the median of a neighbour"
        assert found[int(len(found) * 0.95)] < 100, "one in twenty of a neighbour's requests"
        assert after - before < 40 * MB
    assert len(client.consume("large", 10)) == 10


def test_a_hostile_connection_is_closed(alone: BrokerProcess) -> None:
    for data in (struct.pack(">i", -5), struct.pack(">i", 0x7FFFFFFF), b"GET / HTTP/1.1\r\n\r\n"):
        with connect(alone.port) as one:
            one.sendall(data)
            with contextlib.suppress(ConnectionError):
                assert one.recv(100) == b""


def test_idle_connections_are_cheap(alone: BrokerProcess) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < IDLE_CONNECTIONS + 200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, IDLE_CONNECTIONS + 500), hard))
    request = ApiVersionsRequest(client_software_name="idle", client_software_version="1")

    def open_some(count: int) -> list[Wire]:
        opened = [Wire(alone.port) for _ in range(count)]
        for wire in opened:
            wire.ask(request, 3, ApiVersionsResponse)
        return opened

    # The first ones fill the allocator's pools, which is not a price of each connection.
    held = open_some(200)
    before = alone.resident_bytes()
    held += open_some(IDLE_CONNECTIONS)
    time.sleep(0.3)
    each = (alone.resident_bytes() - before) / IDLE_CONNECTIONS
    for wire in held:
        wire.close()
    assert each <= IDLE_BYTES_EACH, f"{each:.0f} bytes for each idle connection"
    assert os.path.exists(f"/proc/{alone.pid}")
