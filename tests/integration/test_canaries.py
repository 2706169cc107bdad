"""Secrets of every kind, given to a broker and sent to it: afterwards they are in no line, no file, no metric
and no answer, as they were written or in base64."""

from __future__ import annotations

import base64
import os
import signal
import socket
import ssl
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from headrace.protocol.headers import frame_request
from headrace.protocol.message import Message
from headrace.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from headrace.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from headrace.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.protocol.messages.describe_configs_response import DescribeConfigsResponse
from headrace.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from headrace.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from headrace.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from headrace.security.scram_credential import ScramMechanism, salted_password
from tests.certificates import Authority
from tests.cluster_process import eventually
from tests.guarded_broker import Guarded
from tests.ports import own_port

R = TypeVar("R", bound=Message)
SALT = bytes(range(16))
SECRETS = {
    "a key store": "canary-keystore-91b0",
    "users of PLAIN": "canary-plain-77aa",
    "delegation tokens": "canary-delegation-3f5c-0123456789",
    "a token of HTTP": "canary-bearer-token-c4d1",
    "a user of SCRAM": "canary-scram-20e9",
    "what a stranger tries": "canary-guess-5d07",
    "what an administrator sets": "canary-setting-b6e2",
}


class Wire:
    """A client that speaks frames, over TLS."""

    def __init__(self, port: int, authority: Authority, identity: Path | None = None) -> None:
        context = ssl.create_default_context(cafile=str(authority.trust_store))
        if identity is not None:
            context.load_cert_chain(str(identity))
        raw = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._sock = context.wrap_socket(raw, server_hostname="127.0.0.1")

    def close(self) -> None:
        self._sock.close()

    def ask(self, request: Message, version: int, response: type[R]) -> R:
        self._sock.sendall(frame_request(request, version, 7, "test"))
        (size,) = struct.unpack(">i", self._read(4))
        flexible = version >= response.FIRST_FLEXIBLE
        return response.from_bytes(self._read(size)[4 + flexible :], version)

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._sock.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def authenticate(self, mechanism: str, token: bytes) -> int:
        self.ask(SaslHandshakeRequest(mechanism=mechanism), 1, SaslHandshakeResponse)
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), 1, SaslAuthenticateResponse)
        return answer.error_code


class Laden:
    """A broker with a secret in every place for one, and what it has told."""

    def __init__(self, tmp_path: Path) -> None:
        tokens = tmp_path / "tokens"
        tokens.write_text(f"scraper={SECRETS['a token of HTTP']}\n")
        self.metrics_port = own_port()
        self.guarded = Guarded(tmp_path)
        self.authority = self.guarded.authority
        self.store = self.authority.as_pkcs12(tmp_path / "broker.pem", SECRETS["a key store"])
        self.broker = self.guarded.broker
        self.broker.properties |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.store),
            "ssl.keystore.password": SECRETS["a key store"],
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required"
                f' user_carol="{SECRETS["users of PLAIN"]}";'
            ),
            "delegation.token.secret.key": SECRETS["delegation tokens"],
            "headrace.metrics.listener": f"https://127.0.0.1:{self.metrics_port}",
            "headrace.metrics.authentication": "basic,bearer",
            "headrace.metrics.token.file": str(tokens),
            "super.users": "User:admin;User:broker;User:scraper",
        }
        self.told: list[str] = []

    def as_admin(self) -> Wire:
        return Wire(self.broker.port, self.authority, self.guarded.admin_identity)

    def as_stranger(self) -> Wire:
        return Wire(self.guarded.port, self.authority)

    def scrape(self, authorization: str) -> int:
        context = ssl.create_default_context(cafile=str(self.authority.trust_store))
        request = urllib.request.Request(f"https://127.0.0.1:{self.metrics_port}/metrics")
        request.add_header("Authorization", authorization)
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as found:
                self.told.append(found.read().decode())
                return int(found.status)
        except urllib.error.HTTPError as error:
            with error:
                self.told.append(error.read().decode() + str(error.headers))
                return error.code


@pytest.fixture
def laden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laden]:
    monkeypatch.setitem(os.environ, "HEADRACE_LOG_LEVEL", "debug")
    made = Laden(tmp_path)
    with made.broker:
        yield made


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def use_every_secret(laden: Laden) -> list[bytes]:
    """Rightly and wrongly. Returns what follows from them and is as secret."""
    salted = salted_password(ScramMechanism.SHA_512, SECRETS["a user of SCRAM"], SALT, 4096)
    admin = laden.as_admin()
    upsertion = ScramCredentialUpsertion(
        name="alice", mechanism=2, iterations=4096, salt=SALT, salted_password=salted
    )
    altered = admin.ask(
        AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0, AlterUserScramCredentialsResponse
    )
    assert altered.results[0].error_code == 0
    token = admin.ask(CreateDelegationTokenRequest(renewers=[]), 3, CreateDelegationTokenResponse)
    assert token.error_code == 0, "the one answer with a secret: it is what was asked for"
    guess = SECRETS["what a stranger tries"]
    right = f"\0carol\0{SECRETS['users of PLAIN']}".encode()
    for mechanism, sent, code in (
        ("PLAIN", right, 0),
        ("PLAIN", f"\0carol\0{guess}".encode(), 58),
        ("PLAIN", f"{guess}\0carol\0{SECRETS['users of PLAIN']}".encode(), 58),
        ("PLAIN", guess.encode(), 58),
        ("SCRAM-SHA-512", f"n,,n={guess}".encode(), 58),
        ("SCRAM-SHA-512", f"n,a={guess},n=alice,r=x".encode(), 58),
    ):
        client = laden.as_stranger()
        assert client.authenticate(mechanism, sent) == code, sent
        client.close()
    assert laden.scrape(f"Bearer {guess}") == 401
    assert laden.scrape(basic("alice", guess)) == 401
    assert laden.scrape(basic("alice", SECRETS["a user of SCRAM"])) == 403
    assert laden.scrape(f"Bearer {SECRETS['a token of HTTP']}") == 200
    for name in ("ssl.keystore.password", "listener.name.ssl.ssl.keystore.password", "sasl.jaas.config"):
        setting = AlterableConfig(name=name, value=SECRETS["what an administrator sets"])
        resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[setting])
        refused = admin.ask(
            IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse
        )
        assert refused.responses[0].error_code != 0, name
        laden.told.append(str(refused.responses[0].error_message))
    described = admin.ask(
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)],
            include_synonyms=True,
            include_documentation=True,
        ),
        4,
        DescribeConfigsResponse,
    )
    hidden = [each for each in described.results[0].configs if each.is_sensitive]
    assert {each.name for each in hidden} >= {"ssl.keystore.password", "delegation.token.secret.key"}
    laden.told.append(described.to_bytes(4).decode("latin-1"))
    users = admin.ask(
        DescribeUserScramCredentialsRequest(users=None), 0, DescribeUserScramCredentialsResponse
    )
    assert [each.user for each in users.results] == ["alice"]
    laden.told.append(users.to_bytes(0).decode("latin-1"))
    admin.close()
    laden.store.write_bytes(b"half a store")
    laden.broker.signal(signal.SIGHUP)
    eventually(lambda: "the old one stays" in laden.broker.tail(), 10, "a line about the store")
    return [salted, token.hmac]


def test_no_secret_is_anywhere(laden: Laden) -> None:
    derived = use_every_secret(laden)
    laden.broker.stop()
    own = laden.broker.directory / "server.properties"
    assert SECRETS["a key store"] in own.read_text(), "where the operator wrote it"
    files = [path for path in laden.broker.directory.rglob("*") if path.is_file() and path != own]
    assert laden.broker.output in files
    assert len(files) > 5
    secrets = [each.encode() for each in SECRETS.values()] + derived
    for secret in secrets:
        for form in {secret, base64.b64encode(secret), secret.hex().encode()}:
            assert [path for path in files if form in path.read_bytes()] == []
            assert [text[:100] for text in laden.told if form.decode("latin-1") in text] == []
    assert b"authentication failed" in laden.broker.output.read_bytes(), "it was told, without them"


@pytest.mark.parametrize(
    "wrong",
    [
        {"ssl.keystore.password": SECRETS["what a stranger tries"]},
        {
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f'no module user_a="{SECRETS["what a stranger tries"]}"'
            )
        },
    ],
    ids=["a password", "a login module"],
)
def test_a_start_that_fails_tells_no_secret(tmp_path: Path, wrong: dict[str, str]) -> None:
    """The broker says what is wrong with it, and not what it is."""
    broker = Laden(tmp_path).broker
    broker.properties |= wrong
    broker.launch()
    assert broker.process is not None
    try:
        assert broker.process.wait(60) != 0
    finally:
        broker.kill()
    said = broker.output.read_text()
    assert said.startswith("error: ")
    assert [each for each in SECRETS.values() if each in said] == []
