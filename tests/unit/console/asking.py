"""Requests to an ASGI application, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlencode

from starlette.types import ASGIApp

FORM: Final = "application/x-www-form-urlencoded"


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(app: ASGIApp, address: str, *, method: str = "GET", body: str = "", **headers: str) -> Answered:
    """Header names with `_` for `-`."""
    return asyncio.run(asked(app, address, method=method, body=body, **headers))


def post(app: ASGIApp, address: str, fields: Mapping[str, str], **headers: str) -> Answered:
    """As a form of a page of ours does it."""
    given = {"origin": "http://127.0.0.1:9600", "content_type": FORM, **headers}
    return ask(app, address, method="POST", body=urlencode(fields), **given)


async def asked(
    app: ASGIApp, address: str, *, method: str = "GET", body: str = "", **headers: str
) -> Answered:
    path, _, query = address.partition("?")
    given = {"host": "127.0.0.1:9600", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "state": {},
    }
    sent: list[Any] = []

    asked_before = False

    async def receive() -> Any:
        nonlocal asked_before
        if asked_before:
            await asyncio.Event().wait()  # it stays until it has its answer
        asked_before = True
        return {"type": "http.request", "body": body.encode(), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], answered, b"".join(each.get("body", b"") for each in sent[1:]))
