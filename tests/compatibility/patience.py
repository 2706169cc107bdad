"""Waiting for what a broker may do a moment later."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.compatibility.clients.client import ClientFailure


def eventually(check: Callable[[], object], seconds: float = 60) -> None:
    """Metadata reaches the broker's answers a moment after the change has been acknowledged."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            check()
            return
        except (AssertionError, ClientFailure, pytest.fail.Exception):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
