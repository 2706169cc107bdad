"""The cuts cut what they say, and nothing is left afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.chaos.network import OUTSIDE, Network, unavailable
from tests.cluster_process import DIES_WITH_PARENT

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
PORT = 4000
BRISK_SECONDS = 0.2
"""Less than the second after which a lost packet is sent again."""
PATIENT_SECONDS = 2.0
SERVER = """
import socket
listener = socket.create_server(("", 4000))
while True:
    listener.accept()[0].close()
"""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    servers: list[subprocess.Popen[bytes]] = []
    with Network(4) as made:
        try:
            for host in made.hosts:
                prefix = [*made.place(host).prefix, *DIES_WITH_PARENT]
                servers.append(subprocess.Popen([*prefix, sys.executable, "-S", "-c", SERVER]))
            deadline = time.monotonic() + 20
            while not all(reaches(made, OUTSIDE, host) for host in made.hosts):
                assert time.monotonic() < deadline
            yield made
        finally:
            for server in servers:
                server.kill()
                server.wait()
    assert not Path(f"/run/netns/{made.namespace(1)}").exists()
    assert not Path(f"/sys/class/net/hr{made.number:x}b").exists()


@pytest.fixture(autouse=True)
def _healed(network: Network) -> None:
    network.heal()


def reaches(network: Network, source: int, destination: int, seconds: float = BRISK_SECONDS) -> bool:
    prefix = network.place(source).prefix if source != OUTSIDE else ()
    knock = f"exec 3<>/dev/tcp/{network.address(destination)}/{PORT}"
    command = [*prefix, "timeout", str(seconds), "bash", "-c", knock]
    return subprocess.run(command, capture_output=True, timeout=20).returncode == 0


def unreached(network: Network) -> set[tuple[int, int]]:
    """Whom a brisk knock does not reach, and a patient one neither."""
    pairs = [(a, b) for a in (OUTSIDE, *network.hosts) for b in network.hosts if a != b]
    with ThreadPoolExecutor(len(pairs)) as together:
        for seconds in (BRISK_SECONDS, PATIENT_SECONDS):
            knocks = [together.submit(reaches, network, *pair, seconds) for pair in pairs]
            pairs = [pair for pair, knock in zip(pairs, knocks, strict=True) if not knock.result()]
    return set(pairs)


def both(*pairs: tuple[int, int]) -> set[tuple[int, int]]:
    return {*pairs, *((b, a) for a, b in pairs)}


def test_whole(network: Network) -> None:
    assert unreached(network) == set()


def test_groups_are_cut_from_each_other_and_heal(network: Network) -> None:
    network.cut([1, 2], [3, 4])
    assert unreached(network) == both((1, 3), (1, 4), (2, 3), (2, 4))
    network.heal()
    assert unreached(network) == set()


def test_a_ring(network: Network) -> None:
    network.ring()
    assert unreached(network) == both((1, 3), (2, 4))


def test_a_bridge(network: Network) -> None:
    network.bridge(2)
    assert unreached(network) == both((1, 3), (1, 4), (3, 4))


def test_a_silent_host(network: Network) -> None:
    network.silence(2)
    assert unreached(network) == both((1, 2), (3, 2), (4, 2)) | {(OUTSIDE, 2)}


def test_one_way(network: Network) -> None:
    """A connection needs both ways, so neither side can open one; other hosts are not concerned."""
    network.block(1, 2)
    assert unreached(network) == both((1, 2))


def test_ports(network: Network) -> None:
    network.forbid_ports(3, [PORT])
    assert unreached(network) == {(3, 1), (3, 2), (3, 4)}


def test_loss(network: Network) -> None:
    network.lose(1, 60)
    outcomes = {reaches(network, OUTSIDE, 1) for _ in range(20)}
    assert outcomes == {True, False}
