"""Before every page: is it us who were meant, and after every page: what a browser may do with it.

A page of somebody else's can have a name that leads to this machine (DNS rebinding), or a form that posts to
it, or it can ask again and again for what costs something and never see an answer. So the host that a request
names must be one of ours, what changes anything must come from a page of ours, and a page of somebody else's
may have a link to us, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "[::1]"))
_READING: Final = frozenset(("GET", "HEAD"))
_LENGTHS: Final = frozenset((b"content-length", b"transfer-encoding"))
"""Whoever sends both wants a proxy before us to see another request than we do."""
_READ: Final = _LENGTHS | {b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"}
_OWN: Final = frozenset(("same-origin", "none"))
LONGEST_ADDRESS: Final = 64 * 1024
"""Of the path with its query: a search through a wide topic has a position for each partition."""


class Shield:
    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = LOOPBACK | {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # nothing else is served; the server closes it
        refused = self._refusal(scope)
        if refused is not None:
            await _answer(send, *refused)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        await self._app(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {}
        for name, value in scope["headers"]:
            if name in _READ:
                if name in headers:
                    return 400, "a header is there twice"
                headers[name] = value.decode("latin-1").lower()
        if headers.keys() >= _LENGTHS:
            return 400, "a body has one length: Content-Length or Transfer-Encoding"
        host = headers.get(b"host", "")
        if hostname(host) not in self._hosts:
            return 421, "this is not served under that name; --host-name NAME allows it"
        if len(scope.get("query_string", b"")) + len(scope["path"]) > LONGEST_ADDRESS:
            return 414, "the address is too long"
        origin = headers.get(b"origin", "").partition("://")[2]
        is_own = headers.get(b"sec-fetch-site", "same-origin") in _OWN
        if scope["method"] not in _READING:
            if origin != host or not is_own:
                return 403, "a change must come from a page of this console"
        elif (b"origin" in headers and origin != host) or not (is_own or _is_link(headers)):
            return 403, "a page of somebody else's may have a link to this console, and nothing else"
        return None


def _is_link(headers: Mapping[bytes, str]) -> bool:
    """Somebody goes there, and sees it in a tab of its own."""
    return (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == ("navigate", "document")


def hostname(host: str) -> str:
    """Without the port; an IPv6 address stays in its brackets."""
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def _add_headers(message: MutableMapping[str, Any]) -> None:
    present = {name for name, _ in message["headers"]}
    message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in present)]


async def _answer(send: Send, status: int, text: str) -> None:
    body = f"{text}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        *([(b"connection", b"close")] if status == 400 else []),
        *_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
