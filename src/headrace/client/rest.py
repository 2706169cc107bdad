"""Requests to a service that speaks JSON over HTTP: a worker of Connect, a schema registry."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

from headrace.client.errors import ClientFailure

_SECONDS: Final = 90.0


class RestRefused(ClientFailure):
    """The service has answered, and does not do it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Rest:
    who = "service"
    """Who does not answer, and what can be done: told where nobody answers."""
    hint = ""

    def __init__(self, url: str, ca: str | None = None, authorization: str | None = None) -> None:
        """`authorization`: a file with what the header Authorization says."""
        self.url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization is not None:
            self._headers["Authorization"] = Path(authorization).read_text(encoding="utf-8").strip()
        # No proxy: the service is near, and what is sent to it can be secret.
        self._opener = build_opener(
            ProxyHandler({}), HTTPSHandler(context=ssl.create_default_context(cafile=ca))
        )

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, document: object = None) -> Any:
        """The answer, or None if it is empty. Raises ClientFailure with what the service says."""
        body = None if document is None else json.dumps(document).encode()
        request = Request(f"{self.url}{path}", body, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return _parsed(answer.read())
        except HTTPError as error:
            said = _parsed(error.read())
            text = said.get("message") if isinstance(said, dict) else None
            raise RestRefused(str(text or f"HTTP {error.code} {error.reason}"), error.code) from None
        except (URLError, OSError) as error:
            why = getattr(error, "reason", error)
            raise ClientFailure(f"no {self.who} answers at {self.url}: {why}", self.hint) from None


def in_path(name: str) -> str:
    return quote(name, safe="")


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data.strip() else None
    except ValueError:
        return None
