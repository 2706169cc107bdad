"""Thousands of hashes for a password are never made on the loop: everybody else would wait for them."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.process import metrics_guard
from headrace.broker.runtime.work_thread import WorkThread
from headrace.broker.security.delegation_tokens import DelegationTokens
from headrace.broker.security.token_logins import TokenLogins
from headrace.client import authentication
from headrace.client.credentials import Credentials
from headrace.config.secret import Secret
from headrace.controller.scram_image import ScramTable
from headrace.controller.token_image import DelegationToken, TokenTable
from headrace.http import passwords as http_passwords
from headrace.security.principal import user
from headrace.security.scram import ScramExchange
from headrace.security.scram_credential import ScramCredential, ScramMechanism
from headrace.security.token_secret import TokenSecret

SHA = ScramMechanism.SHA_512


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each derivation, whether it was in the thread of the loop."""
    found: list[bool] = []
    real = hashlib.pbkdf2_hmac

    def noted(*args: Any, **named: Any) -> bytes:
        found.append(threading.current_thread() is threading.main_thread())
        return real(*args, **named)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", noted)
    monkeypatch.setattr(http_passwords, "FAILURE_SECONDS", 0.0)
    return found


async def test_a_client_of_ours_derives_its_key_elsewhere(
    places: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers among them: they dial each other on the loop that serves."""
    stored = ScramCredential.of_password(SHA, "right", bytes(16), 4096)
    server = ScramExchange(SHA, {"alice": stored}.get, "server", b"secret")

    async def send(_connection: Any, token: bytes, _timeout: float) -> bytes:
        return server.step(token).reply

    monkeypatch.setattr(authentication, "_send", send)
    places.clear()
    nobody: Any = None
    await authentication._scram(nobody, Credentials(SHA.value, "alice", Secret("right")), 10.0)
    assert places == [False]


@pytest.mark.parametrize("name", ["alice", "nobody"])
async def test_a_password_of_http_is_checked_elsewhere(places: list[bool], name: str) -> None:
    table = ScramTable()
    table.put("alice", SHA, ScramCredential.of_password(SHA, "right", bytes(16), 4096))
    metadata: Any = SimpleNamespace(image=SimpleNamespace(scram=table))
    places.clear()
    assert await metrics_guard._passwords(metadata).are_right(name, Secret("right")) == (name == "alice")
    assert places == [False]


async def test_the_credential_of_a_delegation_token_is_derived_elsewhere(places: list[bool]) -> None:
    tokens = TokenTable()
    tokens.put(DelegationToken("id-1", user("alice"), user("alice"), (), 0, 9_000, 5_000))
    runtime: Any = SimpleNamespace(
        clock=SimpleNamespace(wall_ms=lambda: 1_000), work_thread=WorkThread(asyncio.get_running_loop())
    )
    metadata: Any = SimpleNamespace(image=SimpleNamespace(tokens=tokens))
    logins = TokenLogins(runtime, metadata, DelegationTokens(TokenSecret(b"key")))
    preparation = logins.derive(SHA, "id-1")
    assert preparation is not None
    await preparation
    assert logins.find(SHA, "id-1") is not None
    assert places
    assert not any(places)
    runtime.work_thread.close()
