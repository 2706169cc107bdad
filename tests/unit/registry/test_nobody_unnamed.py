"""No request without a name comes to any route, nor to where there is none."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from headrace.config.http_listener import HttpListener, Words, http_listener
from headrace.config.secret import Secret
from headrace.http import passwords as passwords_module
from headrace.http.gate import Gate
from headrace.http.passwords import Passwords
from headrace.http.tokens import Tokens
from headrace.registry.http.app import ROUTES, application
from headrace.registry.http.guard import Guard
from headrace.registry.rights import Rules
from headrace.registry.service import Service

_TOKEN = "0123456789abcdef-canary"
_ABSENT = {"/", "/nothing", "/subjects/../config", "//subjects", "/subjects/%2e%2e/versions"}
PATHS = sorted({route.path for route in ROUTES} | _ABSENT)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
HEADERS: dict[str, list[tuple[bytes, bytes]]] = {
    "none": [],
    "empty": [(b"authorization", b"")],
    "twice": [(b"authorization", f"Bearer {_TOKEN}".encode())] * 2,
    "another scheme": [(b"authorization", b"Digest " + _TOKEN.encode())],
    "wrong": [(b"authorization", b"Bearer 0123456789abcdef-wrong")],
    "of a proxy": [(b"x-forwarded-user", b"admin"), (b"x-remote-user", b"admin")],
    "a cookie": [(b"cookie", b"authorization=" + _TOKEN.encode())],
}


class Unreachable:
    """Whatever is asked of it, a request has come too far."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


def gate() -> Gate:
    async def nobody(_name: str, _password: Secret) -> bool:
        return False

    words = Words("HTTP", "address", "methods", "tokens")
    listener = http_listener(words, "127.0.0.1:1", ("basic", "bearer"), "/tokens", {})
    assert isinstance(listener, HttpListener)
    return Gate(listener, Passwords(nobody), Tokens({"scraper": _TOKEN}))


async def status_of(app: Any, method: str, path: str, headers: list[tuple[bytes, bytes]]) -> int:
    said: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        said.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "extensions": {},
    }
    await app(scope, receive, send)
    return int(said[0]["status"])


@pytest.mark.parametrize("kind", HEADERS)
async def test_every_route_is_closed_to_whoever_is_not_known(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords_module, "FAILURE_SECONDS", 0.0)
    nothing = Unreachable()
    app = application(cast(Service, nothing), lambda inner: Guard(inner, gate(), cast(Rules, nothing)))
    asked = [(method, path) for method in METHODS for path in PATHS]
    found = await asyncio.gather(*(status_of(app, *each, HEADERS[kind]) for each in asked))
    assert {each for each, status in zip(asked, found, strict=True) if status != 401} == set()
    assert len(asked) > 100


async def test_a_name_that_is_known_gets_further() -> None:
    """So the others were stopped by the guard, and not by something else."""
    app = application(
        cast(Service, Unreachable()), lambda inner: Guard(inner, gate(), cast(Rules, Unreachable()))
    )
    with pytest.raises(AssertionError, match="access was asked for"):
        await status_of(app, "GET", "/subjects", [(b"authorization", f"Bearer {_TOKEN}".encode())])
