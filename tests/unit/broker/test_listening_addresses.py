"""A broker that nobody told to listen elsewhere listens on the loopback address: every socket of it."""

from __future__ import annotations

import os
import re
import socket
from ipaddress import ip_address
from pathlib import Path

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.listeners import Listener
from headrace.testing.cluster import Cluster

_LISTENING = "0A"


def _address(hexadecimal: str) -> str:
    raw = bytes.fromhex(hexadecimal)
    words = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, words)


def listening() -> dict[str, str]:
    """The sockets of this process that take connections: inode and address."""
    own = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            continue  # the listing itself
        if found:
            own.add(found[1])
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
    ]
    return {
        row[9]: _address(row[1].partition(":")[0]) for row in rows if row[3] == _LISTENING and row[9] in own
    }


@pytest.fixture
def any_address() -> str:
    return "0.0.0.0"


def test_sockets_elsewhere_would_be_seen(any_address: str) -> None:
    before = listening()
    with socket.create_server((any_address, 0)):
        assert [address for inode, address in listening().items() if inode not in before] == [any_address]


@pytest.mark.parametrize("properties", [{}, {"headrace.metrics.listener": ":0"}], ids=["plain", "metrics"])
def test_a_broker_listens_on_the_loopback_address(properties: dict[str, str]) -> None:
    before = listening()
    with Cluster(properties):
        found = [address for inode, address in listening().items() if inode not in before]
    assert len(found) == 1 + len(properties)
    assert all(ip_address(address).is_loopback for address in found)


@pytest.mark.parametrize(
    ("listeners", "host"),
    [("PLAINTEXT://:9092", "127.0.0.1"), ("SSL://:9093", "127.0.0.1"), ("PLAINTEXT://0.0.0.0:1", "0.0.0.0")],
)
def test_an_empty_host_is_the_loopback_address(listeners: str, host: str) -> None:
    given = {"listeners": listeners, "ssl.keystore.location": "/k"}
    if host == "0.0.0.0":
        given["advertised.listeners"] = "PLAINTEXT://broker1:1"
    assert [each.host for each in BrokerConfig.parse(given).bound_listeners] == [host]
    assert [each.host for each in BrokerConfig.parse({}).bound_listeners] == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("127.0.0.1.example.org", False),
        ("127.example.org", False),
        ("localhost.example.org", False),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_what_only_looks_like_the_loopback_address_is_another(host: str, is_loopback: bool) -> None:
    assert Listener("PLAINTEXT", "PLAINTEXT", host, 1).is_loopback is is_loopback


def test_a_listener_that_others_reach_is_told_at_the_start() -> None:
    told = BrokerConfig.parse({"listeners": "PLAINTEXT://127.example.org:9092"}).warnings
    assert [each for each in told if "PLAINTEXT" in each]
