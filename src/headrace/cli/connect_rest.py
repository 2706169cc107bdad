"""Requests of the commands of `headrace connect` to a worker."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

import click

from headrace.cli.options import bundled
from headrace.client.errors import ClientFailure

F = TypeVar("F", bound=Callable[..., Any])
_SECONDS: Final = 90.0


class Rest:
    def __init__(self, url: str, ca: str | None, authorization: str | None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if authorization is not None:
            self._headers["Authorization"] = Path(authorization).read_text(encoding="utf-8").strip()
        # No proxy: a worker is near, and what is sent to it can be secret.
        self._opener = build_opener(
            ProxyHandler({}), HTTPSHandler(context=ssl.create_default_context(cafile=ca))
        )

    def get(self, path: str) -> Any:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, document: object = None) -> Any:
        """The answer, or None if it is empty. Raises ClientFailure with what the worker says."""
        body = None if document is None else json.dumps(document).encode()
        request = Request(f"{self.url}{path}", body, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return _parsed(answer.read())
        except HTTPError as error:
            said = _parsed(error.read())
            text = said.get("message") if isinstance(said, dict) else None
            raise ClientFailure(str(text or f"HTTP {error.code} {error.reason}")) from None
        except (URLError, OSError) as error:
            why = getattr(error, "reason", error)
            raise ClientFailure(
                f"no worker answers at {self.url}: {why}", "start one with `headrace connect`, or say --url"
            ) from None


def path_of(name: str, *rest: str) -> str:
    return "/".join(("/connectors", quote(name, safe=""), *rest))


def rest_options(command: F) -> F:
    """Where the worker is, as one argument `rest`."""
    return bundled(
        "rest",
        Rest,
        ("url", "ca", "authorization"),
        [
            click.option(
                "--url",
                default="http://127.0.0.1:8083",
                show_default=True,
                envvar="HEADRACE_CONNECT",
                show_envvar=True,
                metavar="URL",
                help="A worker; any one of the group.",
            ),
            click.option(
                "--cacert",
                "ca",
                type=click.Path(exists=True, dir_okay=False),
                metavar="FILE",
                help="The authority that signed the worker's certificate, if the system does not know it.",
            ),
            click.option(
                "--authorization-file",
                "authorization",
                type=click.Path(exists=True, dir_okay=False),
                metavar="FILE",
                help="What the header Authorization says, as in `Bearer TOKEN`.",
            ),
        ],
    )(command)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data.strip() else None
    except ValueError:
        return None
