"""Every secret is compared in constant time: each way to prove one goes through `hmac.compare_digest`."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

import pytest

from headrace.config.secret import Secret
from headrace.http.tokens import Tokens
from headrace.security.mechanism import AuthenticationFailed
from headrace.security.plain import PlainExchange
from headrace.security.scram import ScramExchange
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import ScramCredential, ScramMechanism
from headrace.security.token_secret import TokenSecret

SHA = ScramMechanism.SHA_256
STORED = ScramCredential.of_password(SHA, "right", bytes(16), 4096)
_TOKENS = ("0123456789abcdef-one", "0123456789abcdef-two")


def scram_server() -> bool:
    server = ScramExchange(SHA, {"alice": STORED}.get, "server", b"secret")
    client = ScramClient(SHA, "alice", "right", "client")
    return server.step(client.final(server.step(client.first()).reply)).authenticated is not None


def scram_client() -> bool:
    server = ScramExchange(SHA, {"alice": STORED}.get, "server", b"secret")
    client = ScramClient(SHA, "alice", "right", "client")
    last = server.step(client.final(server.step(client.first()).reply))
    client.verify(last.reply)
    return True


def password_of_http() -> bool:
    return STORED.is_of(SHA, "right")


def plain() -> bool:
    return PlainExchange({"alice": b"right"}).step(b"\0alice\0right").authenticated is not None


def bearer_token_of_http() -> bool:
    return Tokens({"a": _TOKENS[0], "b": _TOKENS[1]}).user_of(Secret(_TOKENS[0])) == "a"


def delegation_token() -> bool:
    secret = TokenSecret(b"key")
    return secret.find(secret.hmac_of("id-1"), ["id-1"], 1) == "id-1"


def secret_of_a_file() -> bool:
    return Secret("right") == Secret("right")


@pytest.mark.parametrize(
    "proves",
    [
        scram_server,
        scram_client,
        password_of_http,
        plain,
        bearer_token_of_http,
        delegation_token,
        secret_of_a_file,
    ],
)
def test_who_is_right_is_decided_by_the_constant_time_comparison(
    monkeypatch: pytest.MonkeyPatch, proves: Callable[[], bool]
) -> None:
    """With one that says no to everything, nobody gets in. So nothing else decides."""
    assert proves()
    compared = 0

    def never(_left: Any, _right: Any) -> bool:
        nonlocal compared
        compared += 1
        return False

    monkeypatch.setattr(hmac, "compare_digest", never)
    try:
        assert not proves()
    except AuthenticationFailed:
        pass
    assert compared >= (2 if proves is bearer_token_of_http else 1)
