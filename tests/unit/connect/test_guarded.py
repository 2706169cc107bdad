"""Behind a guard nobody is let in without a name, and changes need a right that looking does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from headrace.config.http_listener import BEARER, HttpListener
from headrace.connect.http.app import application
from headrace.http.gate import Gate
from headrace.http.tokens import Tokens
from headrace.registry.errors import forbidden
from headrace.registry.http.guard import Guard
from headrace.registry.rights import Access, Rules
from headrace.security.principal import Principal
from tests.unit.connect.memory import Interface


class _LooksOnly(Access):
    def require_administration(self) -> None:
        raise forbidden("User:eve needs ALTER on the cluster")


class _Rules:
    async def access(self, principal: Principal, host: str) -> Access:
        return _LooksOnly(None) if principal.name == "eve" else Access(None)


@pytest.fixture
async def rest(tmp_path: Path) -> AsyncIterator[Interface]:
    tokens = tmp_path / "tokens"
    tokens.write_text("eve=0123456789abcdef\nann=fedcba9876543210\n")
    tokens.chmod(0o600)
    listener = HttpListener("CONNECT", "127.0.0.1", 0, None, (BEARER,), str(tokens), False)
    gate = Gate(listener, None, Tokens.read(str(tokens)))
    made = Interface()
    made.app = application(made.parts, lambda app: Guard(app, gate, cast(Rules, _Rules())))
    yield made
    await made.close()


def _as(token: str) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", f"Bearer {token}".encode())]


@pytest.mark.parametrize("headers", [[], _as("wrong")])
async def test_nobody_is_let_in_without_a_name(rest: Interface, headers: list[Any]) -> None:
    for path in ("/", "/connectors", "/nothing"):
        found = await rest.ask("GET", path, headers=headers)
        assert (found.status, "www-authenticate" in found.headers) == (401, True)


async def test_who_may_only_look_changes_nothing(rest: Interface) -> None:
    eve = _as("0123456789abcdef")
    assert (await rest.ask("GET", "/connectors", headers=eve)).status == 200
    well = {"connector.class": "WellSource", "topic": "t", "name": "w"}
    checked = await rest.ask("PUT", "/connector-plugins/WellSource/config/validate", well, headers=eve)
    assert checked.status == 200
    for method, path in (
        ("POST", "/connectors"),
        ("PUT", "/connectors/w/config"),
        ("PATCH", "/connectors/w/offsets"),
        ("DELETE", "/connectors/w"),
        ("PUT", "/admin/loggers/root"),
    ):
        found = await rest.ask(method, path, well, headers=eve)
        assert (found.status, found.document["error_code"]) == (403, 403)


async def test_who_may_change_is_asked_no_more(rest: Interface) -> None:
    found = await rest.ask("DELETE", "/connectors/w", headers=_as("fedcba9876543210"))
    assert found.status in (404, 500), "it came through"
