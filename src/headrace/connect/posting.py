"""Requests to somebody else's HTTP server, over one connection that is kept."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import NamedTuple
from urllib.parse import urlsplit

from headrace.connect.api import ConnectorFailure, GiveUp

_LATER = frozenset((408, 425, 429))


class Reply(NamedTuple):
    status: int
    body: bytes

    @property
    def is_done(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_for_later(self) -> bool:
        """The server is busy or broken: the same request may be taken later."""
        return self.status >= 500 or self.status in _LATER

    @property
    def reason(self) -> str:
        return f"HTTP {self.status}: {self.body[:500].decode(errors='replace')}"


class Poster:
    def __init__(self, base: str, headers: Mapping[str, str], timeout: float, authority: str = "") -> None:
        """`base` is https://HOST:PORT, and a path that is put before all others."""
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise GiveUp(f"{base!r} is no address of an HTTP server: they look like https://host:9200")
        self._parts = parts
        self._headers = dict(headers)
        self._timeout = timeout
        self._authority = authority
        self._connection: HTTPConnection | None = None

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """Raises ConnectorFailure where nobody answers. A request that may have been taken is not sent again:
        whoever sends decides whether it can come twice."""
        try:
            connection = self._opened()
            whole = f"{self._parts.path.rstrip('/')}{path}"
            connection.request(method, whole, body, {**self._headers, **headers})
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.read())
        except (OSError, HTTPException) as error:
            self.close()
            raise ConnectorFailure(f"{self._parts.netloc} does not answer: {error!r}") from None
        if answer.will_close:
            self.close()
        return reply

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> HTTPConnection:
        if self._connection is None:
            host = self._parts.hostname or ""
            if self._parts.scheme == "https":
                context = ssl.create_default_context(cafile=self._authority or None)
                self._connection = HTTPSConnection(
                    host, self._parts.port, timeout=self._timeout, context=context
                )
            else:
                self._connection = HTTPConnection(host, self._parts.port, timeout=self._timeout)
        return self._connection


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
