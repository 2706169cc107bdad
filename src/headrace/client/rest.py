"""Requests to a service that speaks JSON over HTTP: a worker of Connect, a schema registry."""

from __future__ import annotations

import json
import ssl
import time
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from headrace.client.errors import ClientFailure

_SECONDS: Final = 90.0
_CHUNK: Final = 64 * 1024


class RestRefused(ClientFailure):
    """The service has answered, and does not do it."""

    def __init__(self, message: str, status: int, code: int | None = None) -> None:
        """`code`: the service's own, which tells its "there is no such thing" from that of a proxy."""
        super().__init__(message)
        self.status = status
        self.code = code


class _NoRedirects(HTTPRedirectHandler):
    """Else whoever answers at that address could have the header Authorization sent to another."""

    def redirect_request(self, *_: object) -> None:
        return None


class Rest:
    who = "service"
    """Who does not answer, and what can be done: told where nobody answers."""
    hint = ""

    def __init__(
        self,
        url: str,
        ca: str | None = None,
        authorization: str | None = None,
        *,
        seconds: float = _SECONDS,
        most_bytes: int | None = None,
    ) -> None:
        """`authorization`: a file with what the header Authorization says. `seconds` and `most_bytes`: how
        long and how large an answer may be."""
        self.url = url.rstrip("/")
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization is not None:
            self._headers["Authorization"] = Path(authorization).read_text(encoding="utf-8").strip()
        # No proxy: the service is near, and what is sent to it can be secret.
        self._opener = build_opener(
            ProxyHandler({}), HTTPSHandler(context=ssl.create_default_context(cafile=ca)), _NoRedirects()
        )

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, document: object = None) -> Any:
        """The answer, or None if it is empty. Raises ClientFailure with what the service says."""
        body = None if document is None else json.dumps(document).encode()
        request = Request(f"{self.url}{path}", body, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                return _parsed(self._read(answer))
        except HTTPError as error:
            with error:
                said = _parsed(error.read(_CHUNK))
            text = said.get("message") if isinstance(said, dict) else None
            if 300 <= error.code < 400:
                text = f"{self.url} sends to {error.headers['Location']}, which is not followed"
            code = said.get("error_code") if isinstance(said, dict) else None
            raise RestRefused(
                str(text or f"HTTP {error.code} {error.reason}"),
                error.code,
                code if isinstance(code, int) else None,
            ) from None
        except (URLError, OSError, HTTPException) as error:
            why = getattr(error, "reason", error)
            raise ClientFailure(f"no {self.who} answers at {self.url}: {why}", self.hint) from None

    def _read(self, answer: HTTPResponse) -> bytes:
        """The time-out of a socket begins anew with each byte: who sends few of them is not waited for."""
        until, read = time.monotonic() + self._seconds, bytearray()
        while chunk := answer.read1(_CHUNK):
            read += chunk
            if self._most_bytes is not None and len(read) > self._most_bytes:
                raise ClientFailure(f"the {self.who} at {self.url} sends more than {self._most_bytes} bytes")
            if time.monotonic() > until:
                raise ClientFailure(f"the {self.who} at {self.url} sends for more than {self._seconds:g} s")
        return bytes(read)


def in_path(name: str) -> str:
    return quote(name, safe="")


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data.strip() else None
    except (ValueError, RecursionError):
        return None
