"""A context for servers that take one and keep it, while certificates are replaced."""

from __future__ import annotations

import ssl
from collections.abc import Callable


def renewable(newest: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """The context of now, which hands each new connection to the one that counts by then."""
    first = newest()

    def take(session: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        session.context = newest()

    first.sni_callback = take
    return first
