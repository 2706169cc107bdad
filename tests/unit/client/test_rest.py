"""What a service beside the brokers may make its client do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headrace.client.rest import Rest, RestRefused

_SECRET = "Bearer of-the-console"


class _Service(BaseHTTPRequestHandler):
    """Sends whoever asks to another service."""

    elsewhere = ""
    heard: list[str | None]

    def do_GET(self) -> None:
        self.heard.append(self.headers["Authorization"])
        self.send_response(302 if self.elsewhere else 200)
        self.send_header("Location", self.elsewhere)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _serving(elsewhere: str, heard: list[str | None]) -> ThreadingHTTPServer:
    handler = type("Handler", (_Service,), {"elsewhere": elsewhere, "heard": heard})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture
def heard() -> list[str | None]:
    """What the other service was sent as Authorization."""
    return []


@pytest.fixture
def url(heard: list[str | None]) -> Iterator[str]:
    other = _serving("", heard)
    first = _serving(f"http://127.0.0.1:{other.server_port}/", [])
    yield f"http://127.0.0.1:{first.server_port}"
    for server in (first, other):
        server.shutdown()
        server.server_close()


def test_credentials_are_not_taken_to_another_service(
    url: str, heard: list[str | None], tmp_path: Path
) -> None:
    header = tmp_path / "header"
    header.write_text(_SECRET)
    with pytest.raises(RestRefused, match="which is not followed") as refused:
        Rest(url, authorization=str(header)).get("/subjects")
    assert refused.value.status == 302
    assert heard == []
