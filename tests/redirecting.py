"""A service that sends whoever asks it to another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Service(BaseHTTPRequestHandler):
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


@contextmanager
def _serving(elsewhere: str, heard: list[str | None]) -> Iterator[str]:
    handler = type("Handler", (_Service,), {"elsewhere": elsewhere, "heard": heard})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def redirecting(heard: list[str | None]) -> Iterator[str]:
    """The address of the first. `heard` gets what the other one is sent as Authorization."""
    with _serving("", heard) as other, _serving(f"{other}/", []) as first:
        yield first
