"""Before every route, and before it is known whether there is one: who asks, and what they may do."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.client.errors import ClientFailure
from headrace.http.gate import Gate, Unauthenticated
from headrace.http.passwords import TooBusy
from headrace.registry.http.peer_certificate import certificate_in
from headrace.registry.rights import NO_LIMITS, Access, Rules

log = logging.getLogger("headrace.registry")

_ACCESS: Final = "headrace.access"
_JSON: Final = b"application/vnd.schemaregistry.v1+json"


def access(request: Request) -> Access:
    """Of this request. There is none that a guard has not let in, unless there is no guard."""
    found: Access | None = request.scope.get(_ACCESS)
    if found is None:
        assert not request.app.state.is_guarded, "a request came past the guard"
        return NO_LIMITS
    return found


class Guard:
    def __init__(self, app: ASGIApp, gate: Gate, rules: Rules) -> None:
        self._app = app
        self._gate = gate
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # nothing else is served; the server closes it
        try:
            principal = await self._gate.admit(_authorization(scope), certificate_in(scope))
            client = scope.get("client") or ("", 0)
            found = await self._rules.access(principal, str(client[0]))
        except Unauthenticated as error:
            await _refuse(send, 401, 40101, str(error), self._gate.challenge)
        except TooBusy as error:
            await _refuse(send, 503, 50301, str(error))
        except ClientFailure as error:
            log.error("users cannot be checked", extra={"error": str(error)})
            await _refuse(send, 503, 50302, "the brokers cannot be asked who may do what")
        else:
            await self._app({**scope, _ACCESS: found}, receive, send)


def _authorization(scope: Scope) -> str | None:
    """None where the header is not there, or there twice."""
    found = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    return found[0].decode("latin-1") if len(found) == 1 else None


async def _refuse(send: Send, status: int, code: int, text: str, challenge: str | None = None) -> None:
    headers = [(b"content-type", _JSON)]
    if challenge is not None:
        headers.append((b"www-authenticate", challenge.encode()))
    start: dict[str, Any] = {"type": "http.response.start", "status": status, "headers": headers}
    body = json.dumps({"error_code": code, "message": text}).encode()
    headers.append((b"content-length", str(len(body)).encode()))
    await send(start)
    await send({"type": "http.response.body", "body": body})
