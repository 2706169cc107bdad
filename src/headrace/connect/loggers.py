"""/admin/loggers: levels of this process's loggers, in the words of Kafka Connect."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from headrace.connect import errors

_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
ROOT: Final = "root"


class Loggers:
    def __init__(self) -> None:
        self._changed: dict[str, int] = {}

    def all(self) -> dict[str, Any]:
        return {name: self._document(name) for name in sorted([ROOT, *self._names()])}

    def one(self, name: str) -> dict[str, Any]:
        if name != ROOT and name not in self._names():
            raise errors.not_found(f"Logger {name} not found.")
        return self._document(name)

    def set(self, name: str, level: str) -> list[str]:
        """The loggers whose level that changed: the named one and those below it."""
        number = _LEVELS[known_level(level)]
        below = "" if name == ROOT else f"{name}."
        touched = sorted({name, *(each for each in self._names() if each.startswith(below))})
        for each in touched:
            logging.getLogger(None if each == ROOT else each).setLevel(number)
            self._changed[each] = time.time_ns() // 1_000_000
        return touched

    def _names(self) -> list[str]:
        found = logging.root.manager.loggerDict
        return [name for name, each in found.items() if isinstance(each, logging.Logger)]

    def _document(self, name: str) -> dict[str, Any]:
        number = logging.getLogger(None if name == ROOT else name).getEffectiveLevel()
        level = max(
            (each for each in _LEVELS if _LEVELS[each] <= number), key=_LEVELS.__getitem__, default="TRACE"
        )
        return {"level": level, "last_modified": self._changed.get(name)}


def known_level(level: str) -> str:
    if level.upper() not in _LEVELS:
        raise errors.not_found(f"invalid log level '{level}'.")
    return level.upper()
