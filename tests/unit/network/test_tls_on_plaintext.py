"""A peer that speaks TLS to a listener without it is told apart from one that sends nonsense."""

from __future__ import annotations

import ssl

import pytest

from headrace.core.errors import InvalidRequest
from headrace.network.partial_frame import checked_size

MOST = 100 * 1024 * 1024


def hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="broker")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_the_beginning_of_a_handshake_is_named_with_the_cure() -> None:
    with pytest.raises(InvalidRequest, match=r"speaks TLS and this listener does not: set its security"):
        checked_size(bytearray(hello()), MOST)


def test_other_lengths_are_only_lengths() -> None:
    with pytest.raises(InvalidRequest, match="frame length 1195725856"):
        checked_size(bytearray(b"GET /"), MOST)
    assert checked_size(bytearray(b"\0\0\0\x05"), MOST) == 9
