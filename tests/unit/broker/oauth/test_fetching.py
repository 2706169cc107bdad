"""Where keys come from: a real https server, and files."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.broker.oauth.fetching import MAX_BYTES, KeysUnavailable, fetch, read_file, source_of
from headrace.config.bearer_properties import BearerProperties
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from tests.certificates import Authority
from tests.token_issuer import KeyServer, issuers_keys

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Iterator[KeyServer]:
    with KeyServer(authority.issue("issuer")) as running:
        yield running


@pytest.fixture
def context(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem.decode())


def test_a_server_gives_the_keys(server: KeyServer, context: ssl.SSLContext) -> None:
    assert fetch(server.url, context) == issuers_keys()
    server.answer = lambda: (200, {}, bytes(MAX_BYTES))
    assert len(fetch(server.url, context)) == MAX_BYTES


def test_a_server_that_is_not_trusted_is_not_asked(server: KeyServer) -> None:
    with pytest.raises(KeysUnavailable, match="certificate is not trusted"):
        fetch(server.url, ssl.create_default_context())
    assert server.asked == 0


def test_a_certificate_of_another_host_does_not_count(authority: Authority, context: ssl.SSLContext) -> None:
    with (
        KeyServer(authority.issue("issuer", "elsewhere.example")) as server,
        pytest.raises(KeysUnavailable, match="certificate is not trusted"),
    ):
        fetch(server.url, context)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: KeyServer, context: ssl.SSLContext, status: int) -> None:
    server.answer = lambda: (status, {"Location": server.url + "/other"}, b"")
    with pytest.raises(KeysUnavailable, match=f"answers {status}"):
        fetch(server.url, context)
    assert server.asked == 1


@pytest.mark.parametrize("status", [204, 404, 500])
def test_another_answer_has_no_keys(server: KeyServer, context: ssl.SSLContext, status: int) -> None:
    server.answer = lambda: (status, {}, issuers_keys() if status > 204 else b"")
    with pytest.raises(KeysUnavailable, match=f"answers {status}"):
        fetch(server.url, context)


def test_no_more_than_the_bound_is_read(server: KeyServer, context: ssl.SSLContext) -> None:
    server.answer = lambda: (200, {}, bytes(MAX_BYTES + 1))
    with pytest.raises(KeysUnavailable, match="more than"):
        fetch(server.url, context)


def test_a_slow_server_is_given_up(server: KeyServer, context: ssl.SSLContext) -> None:
    def slow() -> tuple[int, dict[str, str], bytes]:
        time.sleep(1.0)
        return 200, {}, b"{}"

    server.answer = slow
    began = time.monotonic()
    with pytest.raises(KeysUnavailable, match=r"more than 0\.2 s"):
        fetch(server.url, context, timeout=0.2)
    assert time.monotonic() - began < 0.9


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n{"])
@pytest.mark.parametrize("is_tls", [True, False])
def test_a_server_that_sends_byte_by_byte_is_given_up(
    authority: Authority, context: ssl.SSLContext, says: bytes, is_tls: bool
) -> None:
    """Each byte comes in time. Without TLS they are those of a handshake that does not end."""
    identity = authority.issue("issuer")
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        served, _ = listener.accept()
        with suppress(OSError):
            if is_tls:
                server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                server.load_cert_chain(identity)
                served = server.wrap_socket(served, server_side=True)
            served.sendall(says if is_tls else b"\x16\x03\x03\x40\x00")
            for _ in range(100):
                served.sendall(b"a")
                time.sleep(0.05)
        served.close()

    thread = threading.Thread(target=drip)
    thread.start()
    began = time.monotonic()
    with pytest.raises(KeysUnavailable, match=r"more than 0\.4 s"):
        fetch(f"https://localhost:{listener.getsockname()[1]}/keys", context, timeout=0.4)
    assert time.monotonic() - began < 3
    thread.join()
    listener.close()


def test_a_server_that_lies_about_the_length_or_is_gone(
    authority: Authority, context: ssl.SSLContext
) -> None:
    with KeyServer(authority.issue("issuer")) as server:
        server.answer = lambda: (200, {"Content-Length": "1000"}, b"{}")
        url = server.url
        try:
            content = fetch(url, context, timeout=2)
        except KeysUnavailable:
            content = b"{}"
        assert content == b"{}"
    with pytest.raises(KeysUnavailable, match="cannot be reached"):
        fetch(url, context)


@pytest.mark.parametrize(
    ("name", "is_read"), [("keys.json", True), ("../outside.json", False), ("link", False)]
)
def test_files_are_read_below_the_directory_alone(tmp_path: Path, name: str, is_read: bool) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "keys.json").write_bytes(b"keys")
    (tmp_path / "outside.json").write_bytes(b"secret")
    (tmp_path / "allowed-not.json").write_bytes(b"secret")
    (allowed / "link").symlink_to(tmp_path / "outside.json")
    if is_read:
        assert read_file(f"{allowed}/{name}", str(allowed)) == b"keys"
    else:
        with pytest.raises(KeysUnavailable, match="not below"):
            read_file(f"{allowed}/{name}", str(allowed))
    with pytest.raises(KeysUnavailable, match="not below"):
        read_file(f"{tmp_path}/allowed-not.json", str(allowed))
    with pytest.raises(KeysUnavailable, match="cannot read"):
        read_file(f"{allowed}/missing", str(allowed))


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(MAX_BYTES + 1))
    with pytest.raises(KeysUnavailable, match="more than"):
        read_file(f"{tmp_path}/large", str(tmp_path))


def properties(url: str) -> BearerProperties:
    return BearerProperties(url, None, "i", ("a",), "sub", 0, 1000, 1, 1)


@pytest.mark.parametrize("is_pkcs12", [False, True])
def test_the_trust_store_of_the_server_may_be_named(
    authority: Authority, server: KeyServer, is_pkcs12: bool
) -> None:
    options = f'ssl.truststore.location="{authority.trust_store}"'
    if is_pkcs12:
        store = authority.as_trusted_pkcs12("CANARY")
        options = (
            f'ssl.truststore.location="{store}" ssl.truststore.type=PKCS12 ssl.truststore.password="CANARY"'
        )
    source = source_of(properties(server.url), Secret(f"{MODULE} {options};"))
    assert source() == issuers_keys()
    assert "CANARY" not in repr(source)


def test_what_else_is_asked_for_of_tls_stops_the_start(server: KeyServer) -> None:
    with pytest.raises(ConfigError, match=r"it takes ssl\.truststore\.location"):
        source_of(properties(server.url), Secret(f'{MODULE} ssl.keystore.location="x";'))
