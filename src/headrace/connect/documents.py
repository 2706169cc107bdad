"""Values that are JSON documents, as they are passed on. Pure."""

from __future__ import annotations

import json
from typing import Any


def parsed(value: bytes) -> Any:
    """Raises ValueError."""
    try:
        return json.loads(value.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def one_line(value: bytes) -> bytes:
    """The same document in one line. Line breaks stand between its tokens only, so nothing is written anew:
    numbers keep their digits."""
    return b" ".join(value.splitlines())
