"""Tests of what takes time: a machine that stalls would look too late, or too early."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from headrace.testing.simulation.virtual_loop import ProcessLoop
from headrace.testing.simulation.virtual_time import Scheduler


def in_virtual_time(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    ProcessLoop(Scheduler()).run_until_complete(test())
