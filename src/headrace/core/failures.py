"""Mistakes of ours that must not end more than what they happened in: each is reported by its name.

Whatever can be expected to happen is answered where it happens, and not reported here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

Reporter = Callable[[str, BaseException], bool]
"""Returns whether it has passed the failure on."""

_LOG: Final = logging.getLogger("headrace.failures")
_REPORTERS: Final[list[Reporter]] = []


def report(name: str, error: BaseException) -> None:
    if not any(reporter(name, error) for reporter in _REPORTERS):
        _LOG.error("%s failed: %r", name, error, exc_info=error)


def add_reporter(reporter: Reporter) -> None:
    """For whoever knows more of the process than this: an event loop has a handler for failures."""
    _REPORTERS.append(reporter)
