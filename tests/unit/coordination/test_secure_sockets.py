"""The sockets that kazoo gets: it waits for what select tells of, and OpenSSL may have read more."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.config.broker import BrokerConfig
from headrace.coordination.ensemble.connection import _Handler
from headrace.coordination.ensemble.secure_sockets import SecureSockets
from tests.certificates import Authority

SECONDS = 10.0


class Server:
    """Shakes hands once for each connection, and does then what a test says."""

    def __init__(self, identity: Path, serve: Callable[[ssl.SSLSocket], None]) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(identity)
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            try:
                with self._context.wrap_socket(plain, server_side=True) as connection:
                    self._serve(connection)
            except OSError:
                plain.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(SECONDS)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def start(authority: Authority) -> Iterator[Callable[[Callable[[ssl.SSLSocket], None]], Server]]:
    servers: list[Server] = []

    def make(serve: Callable[[ssl.SSLSocket], None]) -> Server:
        servers.append(Server(authority.issue("zookeeper"), serve))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def sockets(trusted: Path) -> SecureSockets:
    config = BrokerConfig.parse(
        {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": str(trusted)}
    )
    assert config.zookeeper_security.tls is not None
    return SecureSockets(config.zookeeper_security.tls)


def connect(made: SecureSockets, server: Server) -> ssl.SSLSocket:
    return made.connect(server.address, "localhost", SECONDS)


Start = Callable[[Callable[[ssl.SSLSocket], None]], Server]


def test_what_is_decrypted_already_is_not_waited_for(authority: Authority, start: Start) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        connection.sendall(b"one and two")  # in one record
        connection.recv(1)

    made = sockets(authority.trust_store)
    handler = _Handler(SECONDS, made)
    other, awake = socket.socketpair()
    with connect(made, start(serve)) as connection, other, awake:
        assert connection.recv(3) == b"one"
        began = time.monotonic()
        ready = handler.select([connection, other], [], [], SECONDS)
        assert ready[0] == [connection]
        awake.send(b"x")
        assert handler.select([connection, other], [], [], SECONDS)[0] == [connection, other]
        assert time.monotonic() - began < SECONDS / 2
        assert connection.recv(100) == b" and two"
        assert handler.select([connection], [], [], 0.01)[0] == []


def test_a_failure_is_told_once_and_forgotten_after_a_success(
    tmp_path: Path, authority: Authority, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(lambda connection: None)
    (tmp_path / "strange").mkdir()
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Authority(tmp_path / "strange").pem)
    made = sockets(trusted)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with pytest.raises(ssl.SSLCertVerificationError):
                connect(made, server)
    assert len(caplog.records) == 1
    assert made.failure is not None
    trusted.write_bytes(authority.pem)  # read again for each connection
    connect(made, server).close()
    made.succeeded()
    assert made.failure is None


def test_a_store_that_is_half_written_leaves_the_one_before(
    authority: Authority, start: Start, tmp_path: Path
) -> None:
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority.pem)
    made = sockets(trusted)
    trusted.write_bytes(b"")
    connect(made, start(lambda connection: None)).close()
    assert made.failure is not None
    assert "zookeeper.ssl.*" in made.failure


def test_a_server_that_hangs_up_at_once_did_not_like_us(authority: Authority, start: Start) -> None:
    made = sockets(authority.trust_store)
    with connect(made, start(lambda connection: None)) as connection:
        assert connection.recv(1) == b""
    assert made.failure is not None
    assert "zookeeper.ssl.keystore.location" in made.failure


def test_a_server_that_hangs_up_later_just_stops(authority: Authority, start: Start) -> None:
    made = sockets(authority.trust_store)
    with connect(made, start(lambda connection: connection.sendall(b"x"))) as connection:
        assert connection.recv(1) == b"x"
        assert connection.recv(1) == b""
    assert made.failure is None


def test_no_authority_but_ours_is_trusted(authority: Authority) -> None:
    made = sockets(authority.trust_store)
    assert len(made._context.get_ca_certs()) == 1
    assert made._context.check_hostname
    assert made._context.verify_mode is ssl.CERT_REQUIRED
