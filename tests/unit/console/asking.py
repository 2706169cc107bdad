"""Requests to an ASGI application, without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from starlette.types import ASGIApp


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


def ask(app: ASGIApp, address: str, *, method: str = "GET", **headers: str) -> Answered:
    """Header names with `_` for `-`."""
    return asyncio.run(asked(app, address, method=method, **headers))


async def asked(app: ASGIApp, address: str, *, method: str = "GET", **headers: str) -> Answered:
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

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], answered, b"".join(each.get("body", b"") for each in sent[1:]))
