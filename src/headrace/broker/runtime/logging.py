"""Structured logs: events with fields, as JSON lines, or in colour where a person watches.

Loggers stand on the standard library's, below the name `headrace`. So a program that embeds a broker
decides itself what becomes of its events; `configure` is what the broker's own command calls. Nothing is
logged per request: counters are for that.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from headrace.core.errors import ConfigError

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger
    from structlog.types import EventDict, Processor

LEVEL_VARIABLE = "HEADRACE_LOG_LEVEL"
BROKER_VARIABLE = "HEADRACE_LOG_BROKER"
"""Set by whoever lets several brokers speak to one stream: each says who it is."""

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_OWN = "_headrace_handler"


def _structlog() -> Any:
    """structlog, without what it would load on its own accord.

    Its console module imports rich for coloured tracebacks, which costs 150 ms of the broker's start; ours
    are plain. Where rich is loaded already, nothing is gained and nothing is changed.
    """
    if "structlog" not in sys.modules and "rich" not in sys.modules:
        # None makes an import fail, as if the package were not there.
        sys.modules["rich"] = None  # type: ignore[assignment]  # the import system's own sentinel
        try:
            import structlog
        finally:
            del sys.modules["rich"]
    import structlog
    import structlog.stdlib

    return structlog


def get_logger(name: str) -> BoundLogger:
    """A logger such as headrace.broker. Fields are keyword arguments: `log.info("ready", port=1)`."""
    structlog = _structlog()
    logger: BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


def configure(stream: TextIO | None = None, environ: Mapping[str, str] | None = None) -> None:
    """Send the events of the broker, and the standard library's warnings, to `stream` (stderr)."""
    stream = sys.stderr if stream is None else stream
    environ = os.environ if environ is None else environ
    level = _level(environ.get(LEVEL_VARIABLE, "info"))
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_formatter(in_colour=stream.isatty(), broker=environ.get(BROKER_VARIABLE)))
    setattr(handler, _OWN, True)
    for name, least in (("headrace", level), ("asyncio", max(level, logging.WARNING))):
        logger = logging.getLogger(name)
        logger.setLevel(least)
        logger.propagate = False
        logger.handlers = [kept for kept in logger.handlers if not hasattr(kept, _OWN)]
        logger.addHandler(handler)


def _level(text: str) -> int:
    level = _LEVELS.get(text.strip().lower())
    if level is None:
        raise ConfigError(f"{LEVEL_VARIABLE}={text}: use one of {', '.join(_LEVELS)}")
    return level


def _formatter(*, in_colour: bool, broker: str | None) -> logging.Formatter:
    structlog = _structlog()

    def add_broker(_: object, __: str, event: EventDict) -> EventDict:
        return event if broker is None else {"broker": int(broker), **event}

    shared: list[Processor] = [
        add_broker,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    if in_colour:
        last = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    else:
        last = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    formatter: logging.Formatter = structlog.stdlib.ProcessorFormatter(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        # Records of the standard library bring their fields as `extra`.
        foreign_pre_chain=[structlog.stdlib.ExtraAdder()],
    )
    return formatter
