"""How much a peer may ask for before anything is made of it, and the error when it asks for more."""

from __future__ import annotations

from typing import Final

from headrace.core.errors import ClientError

MAX_STRING: Final = 32767
"""Bytes of UTF-8. A classic length cannot say more; a compact one may not."""
MAX_BODY_TAGS: Final = 1024
MAX_HEADER_TAGS: Final = 64
MAX_ELEMENTS: Final = 1 << 20
"""Array elements in one message, all arrays together: an element is far larger here than on the wire."""


class ProtocolError(ClientError):
    """Bytes from a peer that are not a message. The connection that sent them is of no further use."""
