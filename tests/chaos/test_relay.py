"""The relay does what the weather says."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.broker_process import HERE
from tests.chaos.relay import Relay, Weather
from tests.cluster_process import eventually
from tests.ports import own_port


@pytest.fixture
def echo_port() -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    connection.sendall(data)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


@pytest.fixture
def relay(echo_port: int) -> Iterator[Relay]:
    with Relay(HERE, own_port(), echo_port, seed=1) as started:
        yield started


def round_trip(connection: socket.socket, data: bytes = b"x") -> float:
    began = time.monotonic()
    connection.sendall(data)
    left = len(data)
    while left:
        more = len(connection.recv(left))
        if not more:
            raise ConnectionResetError
        left -= more
    return time.monotonic() - began


def fastest(connection: socket.socket, trips: int, data: bytes = b"x") -> float:
    """Of some: a machine that stalls is slow of itself."""
    return min(round_trip(connection, data) for _ in range(trips))


def connect(relay: Relay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", relay.port), 5)


def test_delay_holds_back_both_ways_and_does_not_slow_down(relay: Relay) -> None:
    with connect(relay) as connection:
        assert fastest(connection, 20) < 0.1
        relay.set(Weather(delay_ms=150))
        assert 0.3 <= fastest(connection, 5) < 0.8
        assert fastest(connection, 3, b"x" * 5_000_000) < 2.5
        relay.set(Weather())
        assert fastest(connection, 20) < 0.1


def test_a_stall_keeps_the_bytes(relay: Relay) -> None:
    with connect(relay) as connection:
        relay.set(Weather(stalled=True))
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            round_trip(connection)
        connection.settimeout(5)
        relay.set(Weather())
        assert connection.recv(1) == b"x"


def test_a_throttle(relay: Relay) -> None:
    relay.set(Weather(bytes_per_second=100_000))
    with connect(relay) as connection:
        assert round_trip(connection, b"x" * 40_000) > 0.4


def test_resets(relay: Relay) -> None:
    relay.set(Weather(resets=0.2))
    ends = 0
    for _ in range(10):
        with connect(relay) as connection:
            try:
                for _ in range(50):
                    round_trip(connection)
            except OSError:
                ends += 1
    assert ends == 10


def test_refusing_resets_old_and_new_connections(relay: Relay) -> None:
    with connect(relay) as connection:
        round_trip(connection)
        relay.set(Weather(refusing=True))
        with pytest.raises(OSError):
            round_trip(connection)
    with pytest.raises(OSError), connect(relay) as connection:
        round_trip(connection)


def test_the_port_refuses_while_nobody_listens_behind_it() -> None:
    port = own_port()
    with Relay(HERE, own_port(), port) as relay:
        behind = socket.create_server(("127.0.0.1", port))
        with connect(relay):
            behind.accept()[0].close()
        behind.close()

        def refused() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", relay.port)) == errno.ECONNREFUSED

        eventually(refused, 5, "the port refuses")
        with socket.create_server(("127.0.0.1", port)):
            eventually(lambda: not refused(), 5, "the port is open again")
