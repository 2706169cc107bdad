"""Filters of records in CEL, a language in which nothing can be called but what is listed here.

CEL itself ends always, not always soon: lists within lists, and regular expressions that repeat repetitions,
take minutes. So both are refused, and texts, values and the expression have limits.
"""

from __future__ import annotations

import re
from typing import Any, Final

import cel

from headrace.console.records.texts import parsed_json
from headrace.protocol.records import Record

LONGEST: Final = 500
MOST_BYTES: Final = 256 * 1024
"""Of a value that a filter looks into."""
VARIABLES: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_OPERATORS: Final = "_+_ _-_ _*_ _/_ _%_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _&&_ _||_ _?_:_ _[_] !_ -_ @in in"
_WORDS: Final = "size contains startsWith endsWith int uint double string bool @not_strictly_false"
_FUNCTIONS: Final = frozenset((*_OPERATORS.split(" "), *_WORDS.split(" ")))
_OVER_LISTS: Final = re.compile(r"\.\s*(?:map|filter|all|exists|exists_one)\s*\(")


class FilterRefused(Exception):
    """Says what is wrong with it."""


class TooLarge(Exception):
    """The record's value is longer than filters look into."""


class Filter:
    def __init__(self, text: str) -> None:
        """Raises FilterRefused."""
        if len(text) > LONGEST:
            raise FilterRefused(f"it is longer than {LONGEST} characters")
        if not text.isprintable():
            raise FilterRefused("it has a line break, or another character that cannot be seen")
        if len(_OVER_LISTS.findall(text)) > 1:
            raise FilterRefused("it goes over a list more than once (map, filter, all, exists)")
        try:
            self._program = cel.compile(text)
        except ValueError as error:
            raise FilterRefused(_first_line(error)) from None
        bound = set(self._program.variables()) - set(VARIABLES)
        if bound and not _OVER_LISTS.search(text):
            raise FilterRefused(f"{sorted(bound)[0]} is not known; there are {', '.join(VARIABLES)}")
        strange = sorted(set(self._program.functions()) - _FUNCTIONS)
        if strange:
            raise FilterRefused(
                f"{strange[0]} cannot be used; there are size, contains, startsWith, endsWith, int, double,"
                " string, bool and the operators"
            )
        self.text = text

    def takes(self, topic: str, partition: int, record: Record) -> bool:
        """A record without what is asked for is not taken. Raises TooLarge."""
        value = record.value
        if value is not None and len(value) > MOST_BYTES:
            raise TooLarge
        try:
            found = self._program.execute(
                {
                    "topic": topic,
                    "partition": partition,
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": _plain(record.key),
                    "value": _value(value),
                    "headers": {name: _plain(each) for name, each in record.headers},
                }
            )
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, ArithmeticError):
            return False
        return found is True


def _plain(data: bytes | None) -> str | None:
    return None if data is None else data[:MOST_BYTES].decode("utf-8", "replace")


def _value(data: bytes | None) -> Any:
    """JSON as its members, everything else as text."""
    text = _plain(data)
    if text is None or text.lstrip()[:1] not in ("{", "["):
        return text
    parsed = parsed_json(text)
    return text if parsed is None else parsed


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return line.rpartition("ERROR: ")[2] or line
