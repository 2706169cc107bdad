"""Before every page, and every file of one: who asks, and what they may see."""

from __future__ import annotations

import logging
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.client.errors import ClientFailure
from headrace.console.http import acting
from headrace.console.http.acting import actor_in
from headrace.console.http.sights import SCOPE, Sight
from headrace.http.gate import Gate, Unauthenticated
from headrace.http.passwords import TooBusy
from headrace.registry.http.peer_certificate import certificate_in
from headrace.registry.rights import Rules

log = logging.getLogger("headrace.console")


class Guard:
    def __init__(self, app: ASGIApp, gate: Gate, rules: Rules) -> None:
        self._app = app
        self._gate = gate
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            authorization = _authorization(scope)
            principal = await self._gate.admit(authorization, certificate_in(scope))
            client = scope.get("client") or ("", 0)
            rights = await self._rules.rights(principal, str(client[0]))
        except Unauthenticated as error:
            await _refuse(send, 401, str(error), self._gate.challenge)
        except TooBusy as error:
            await _refuse(send, 503, str(error))
        except ClientFailure as error:
            log.error("users cannot be checked", extra={"error": str(error)})
            await _refuse(send, 503, "the brokers cannot be asked who may do what")
        else:
            sight = Sight(rights, f"{principal} {client[0]}" if rights is not None else "")
            actor = actor_in(scope, principal, authorization)
            await self._app({**scope, SCOPE: sight, acting.SCOPE: actor}, receive, send)


def _authorization(scope: Scope) -> str | None:
    """None where the header is not there, or there twice."""
    found = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    return found[0].decode("latin-1") if len(found) == 1 else None


async def _refuse(send: Send, status: int, text: str, challenge: str | None = None) -> None:
    body = f"{text}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if challenge is not None:
        headers.append((b"www-authenticate", challenge.encode()))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
