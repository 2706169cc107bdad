"""TLS over a wire that cuts the ciphertext anywhere and stalls at any call: the same bytes come out."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.network.tls import TlsSocket
from tests.unit.network.tls_material import client_context, server_context


class Wire:
    """A socket without a kernel: `steps` says how many bytes the next calls pass, 0 for none."""

    def __init__(self, steps: list[int] | None = None) -> None:
        self.arrived = bytearray()
        self.sent = bytearray()
        self.is_closed = False
        self.has_ended = False
        self._steps = list(steps or ())

    def _next(self) -> int:
        return self._steps.pop() if self._steps else 1 << 20

    def recv_into(self, view: memoryview) -> int:
        step = self._next()
        if not self.arrived and self.has_ended:
            return 0
        if not step or not self.arrived:
            raise BlockingIOError
        count = min(step, len(view), len(self.arrived))
        view[:count] = self.arrived[:count]
        del self.arrived[:count]
        return count

    def send(self, data: memoryview) -> int:
        step = self._next()
        if not step:
            raise BlockingIOError
        self.sent += data[:step]
        return min(step, len(data))

    def close(self) -> None:
        self.is_closed = True


class Peer:
    """A client that is OpenSSL and nothing else."""

    def __init__(self) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = client_context().wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")

    def read_all(self, wire: Wire) -> bytes:
        """What the server has sent."""
        self.incoming.write(bytes(wire.sent))
        wire.sent.clear()
        found = b""
        try:
            while True:
                found += self.tls.read(1 << 16)
        except ssl.SSLWantReadError:
            return found

    def write(self, wire: Wire, data: bytes) -> None:
        at = 0
        while at < len(data):
            at += self.tls.write(memoryview(data)[at:])
        wire.arrived += self.outgoing.read()


def shake_hands(wire: Wire) -> tuple[TlsSocket, Peer]:
    peer = Peer()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = server_context().wrap_bio(incoming, outgoing, server_side=True)
    while True:
        done = 0
        for side in (peer.tls, tls):
            try:
                side.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                pass
        incoming.write(peer.outgoing.read())
        peer.incoming.write(outgoing.read())
        if done == 2:
            break
    unused: Any = wire
    return TlsSocket(unused, tls, incoming, outgoing), peer


def read_some(sock: TlsSocket, size: int) -> bytes | None:
    """None: nothing now."""
    buffer = bytearray(size)
    try:
        return bytes(buffer[: sock.recv_into(buffer)])
    except BlockingIOError:
        return None


steps = st.lists(st.sampled_from([0, 0, 1, 5, 100, 16_000, 100_000]), max_size=60)


@given(
    steps, st.lists(st.binary(min_size=1, max_size=40_000), max_size=6), st.sampled_from([1, 4, 1000, 70_000])
)
def test_what_is_sent_arrives_however_the_wire_cuts_it(
    steps: list[int], messages: list[bytes], size: int
) -> None:
    wire = Wire(steps)
    sock, peer = shake_hands(wire)
    for message in messages:
        peer.write(wire, message)
    expected = b"".join(messages)[: 200 * size]
    found = b""
    for _ in range(20_000):
        part = read_some(sock, size)
        if part is not None:
            found += part
        elif not wire.arrived:
            assert not sock.has_more, "whoever is told that there is more would wait for ever"
            break
        if len(found) >= len(expected):
            break
    assert found[: len(expected)] == expected


@given(steps, st.lists(st.binary(min_size=1, max_size=300_000), max_size=4))
def test_what_is_answered_leaves_in_order_and_whole(steps: list[int], messages: list[bytes]) -> None:
    wire = Wire(steps)
    sock, peer = shake_hands(wire)
    for message in messages:
        at = 0
        while at < len(message):
            try:
                at += sock.send(memoryview(message)[at:])
            except BlockingIOError:
                continue
    while not sock.flush():
        pass
    assert peer.read_all(wire) == b"".join(messages)


def test_one_call_takes_many_records_and_leaves_none_unnoticed() -> None:
    wire = Wire()
    sock, peer = shake_hands(wire)
    peer.write(wire, b"x" * 100_000)
    assert len(read_some(sock, 70_000) or b"") == 70_000
    assert sock.has_more, "30,000 bytes wait where no poller sees them"
    assert len(read_some(sock, 70_000) or b"") == 30_000
    assert not sock.has_more


def test_a_goodbye_ends_the_stream_after_what_came_before() -> None:
    wire = Wire()
    sock, peer = shake_hands(wire)
    peer.write(wire, b"last")
    with pytest.raises(ssl.SSLWantReadError):
        peer.tls.unwrap()
    wire.arrived += peer.outgoing.read()
    assert read_some(sock, 100) == b"last"
    assert read_some(sock, 100) == b""


def test_a_cut_in_a_record_is_an_end_and_not_data() -> None:
    wire = Wire()
    sock, peer = shake_hands(wire)
    peer.write(wire, b"whole")
    peer.write(wire, b"harmed")
    del wire.arrived[-3:]
    wire.has_ended = True
    assert read_some(sock, 100) == b"whole"
    assert read_some(sock, 100) == b""


def test_a_changed_byte_is_an_error() -> None:
    wire = Wire()
    sock, peer = shake_hands(wire)
    peer.write(wire, b"harmed")
    wire.arrived[-1] ^= 1
    with pytest.raises(OSError):
        read_some(sock, 100)


def test_the_peer_is_told_that_it_is_over() -> None:
    wire = Wire()
    sock, peer = shake_hands(wire)
    sock.close()
    assert wire.is_closed
    peer.incoming.write(bytes(wire.sent))
    assert peer.tls.read(10) == b""


def test_nothing_that_is_sent_can_be_read_on_the_wire() -> None:
    wire = Wire()
    sock, _ = shake_hands(wire)
    sock.send(b"canary" * 1000)
    assert b"canary" not in wire.sent
