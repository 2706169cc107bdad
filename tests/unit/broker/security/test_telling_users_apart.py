"""Whoever has the wrong password hears what whoever does not exist hears: the same bytes, for the same work.

Work is counted, not timed: a time would be of this machine and of this moment.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.process import metrics_guard
from headrace.broker.security.sasl_mechanisms import ScramCredentials
from headrace.config.secret import Secret
from headrace.controller.scram_image import ScramTable
from headrace.http import passwords as http_passwords
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.security.mechanism import Exchange
from headrace.security.plain import PlainExchange
from headrace.security.sasl_session import AuthenticateReply, Handshake, SaslSession
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import ScramCredential, ScramMechanism
from headrace.security.scram_messages import ServerFirst
from tests.unit.broker.security.test_authentication import Client, Server

KNOWN, UNKNOWN = "alice", "nobody"
SALT = bytes(range(16))


class Work:
    """What hashes, and how often."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: Counter[str] = Counter()
        for module, name in (
            (hmac, "digest"),
            (hmac, "compare_digest"),
            (hashlib, "pbkdf2_hmac"),
        ):
            monkeypatch.setattr(module, name, self._counted(name, getattr(module, name)))

    def _counted(self, name: str, function: Any) -> Any:
        def counted(*args: Any, **named: Any) -> Any:
            self.done[name] += 1
            return function(*args, **named)

        return counted

    def taken(self) -> dict[str, int]:
        done, self.done = dict(self.done), Counter()
        return done


def credentials(*mechanisms: ScramMechanism) -> ScramTable:
    table = ScramTable()
    for mechanism in mechanisms:
        table.put(KNOWN, mechanism, ScramCredential.of_password(mechanism, "right", SALT, 4096))
    return table


def converse(
    exchange: Exchange, mechanism: ScramMechanism, name: str
) -> tuple[ServerFirst, AuthenticateReply]:
    session = SaslSession({mechanism.value: lambda: exchange}, reauth_ms=0)
    shaken = session.on_handshake(1, mechanism.value, 0)
    assert isinstance(shaken, Handshake)
    client = ScramClient(mechanism, name, "wrong", "client")
    first = session.on_authenticate(1, client.first(), 0)
    assert first is not None
    last = session.on_authenticate(1, client.final(first.token), 0)
    assert last is not None
    return ServerFirst.parse(first.token), last


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_scram_does_the_same_for_both(monkeypatch: pytest.MonkeyPatch, mechanism: ScramMechanism) -> None:
    metadata: Any = SimpleNamespace(image=SimpleNamespace(scram=credentials(mechanism)))
    found = ScramCredentials(metadata)
    found.exchange(mechanism)  # the first time it makes the secret for salts
    heard, worked = [], []
    for name in (KNOWN, UNKNOWN):
        exchange = found.exchange(mechanism)
        work = Work(monkeypatch)
        first, last = converse(exchange, mechanism, name)
        worked.append(work.taken())
        assert len(first.nonce) == len("client") + 48
        heard.append((first.iterations, len(first.salt), last))
        monkeypatch.undo()
    assert heard[0] == heard[1]
    assert worked[0] == worked[1]
    assert worked[0]["compare_digest"] == 1


async def test_plain_answers_both_with_the_same_bytes() -> None:
    """Whole frames, as they come from the socket, and the end of the connection."""
    server = Server(0, 10_000)
    frames = []
    try:
        for token in (b"\0alice\0wrong!", b"\0nobody\0wrong", b"\0nobody\0secret"):
            client = await Client.of(server)
            await client.handshake()
            answer = await client.ask(SaslAuthenticateRequest(auth_bytes=token), 1)
            frames.append((answer, await client.frame()))
    finally:
        server.close()
    assert frames[0] == frames[1] == frames[2]
    assert frames[0][1] == b"", "closed"
    assert len(frames[0][0]) > 10


def test_plain_does_the_same_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = []
    for name in (KNOWN, UNKNOWN):
        work = Work(monkeypatch)
        session = SaslSession({"PLAIN": lambda: PlainExchange({KNOWN: b"right"})}, reauth_ms=0)
        session.on_handshake(1, "PLAIN", 0)
        session.on_authenticate(1, f"\0{name}\0wrong".encode(), 0)
        worked.append(work.taken())
        monkeypatch.undo()
    assert worked == [{"compare_digest": 1}] * 2


async def test_passwords_of_http_cost_the_same_for_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_passwords, "FAILURE_SECONDS", 0.0)
    metadata: Any = SimpleNamespace(image=SimpleNamespace(scram=credentials(*ScramMechanism)))
    guard = metrics_guard._passwords(metadata)
    worked = []
    for name in (KNOWN, UNKNOWN):
        work = Work(monkeypatch)
        assert not await guard.are_right(name, Secret("wrong"))
        worked.append(work.taken())
    assert worked[0]["pbkdf2_hmac"] == 1
    assert worked[0] == worked[1]
