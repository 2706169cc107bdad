"""The brokers' own log events: silent in a run, or told with the virtual time among everything else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Teller(logging.Handler):
    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        said: Any = record.msg if not record.args else record.args
        if isinstance(said, dict):
            fields = ", ".join(f"{name}={value}" for name, value in said.items() if name != "event")
            said = f"{said.get('event')} {fields}"
        self._tell(f"    {record.levelname.lower()}: {said}")


@contextmanager
def broker_events(tell: Callable[[str], None] | None) -> Iterator[None]:
    """While this lasts, what brokers log goes to `tell`, or nowhere."""
    logger = logging.getLogger("headrace")
    level, propagate, handlers = logger.level, logger.propagate, logger.handlers
    logger.propagate = False
    logger.handlers = [] if tell is None else [_Teller(tell)]
    logger.setLevel(logging.CRITICAL + 1 if tell is None else logging.INFO)
    try:
        yield
    finally:
        logger.level, logger.propagate, logger.handlers = level, propagate, handlers
        logger.setLevel(level)
