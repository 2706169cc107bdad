"""Filters of records in CEL, a language in which nothing can be called but what is listed here.

CEL itself ends always, not always soon: lists within lists, and regular expressions that repeat repetitions,
take minutes. So both are refused, and texts, values and the expression have limits. What is dear all the same
ends with its process (`filter_process.py`).
"""

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any, Final

# The package imports its own command line, which takes longer than all else that a filter needs.
sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))

import cel  # noqa: E402 (after what it shall not import)

from headrace.console.records.texts import NotTakenApart, json_in  # noqa: E402 (as above)
from headrace.protocol.records import Record  # noqa: E402 (as above)

LONGEST: Final = 500
MOST_BYTES: Final = 256 * 1024
"""Of a value that a filter looks into."""
VARIABLES: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_OPERATORS: Final = "_+_ _-_ _*_ _/_ _%_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _&&_ _||_ _?_:_ _[_] !_ -_ @in in"
_WORDS: Final = "size contains startsWith endsWith int uint double string bool @not_strictly_false"
_FUNCTIONS: Final = frozenset((*_OPERATORS.split(" "), *_WORDS.split(" ")))
_NO_CHARACTER: Final = re.compile(
    r"(?i)(?<!\\)((?:\\\\)*)(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})"
)
"""Half of a pair, which JSON can write and CEL cannot take: it would hide its record from every filter."""
_OVER_LISTS: Final = re.compile(r"\.\s*(?:map|filter|all|exists|exists_one|existsOne)\s*\(")


class FilterRefused(Exception):
    """Says what is wrong with it."""


class TooLarge(Exception):
    """The record's value is longer than filters look into, or nested deeper."""


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
        """A record without what is asked for is not taken. Raises TooLarge: where a value was not looked into
        a record is taken or counted, or it could hide."""
        if record.value is not None and len(record.value) > MOST_BYTES:
            raise TooLarge
        value, is_whole = _value(record.value)
        taken = self._is_true(topic, partition, record, value)
        if not taken and not is_whole:
            raise TooLarge
        return taken

    def _is_true(self, topic: str, partition: int, record: Record, value: Any) -> bool:
        try:
            found = self._program.execute(
                {
                    "topic": topic,
                    "partition": partition,
                    "offset": record.offset,
                    "timestamp": record.timestamp,
                    "key": _plain(record.key),
                    "value": value,
                    "headers": {_name(name): _plain(each) for name, each in record.headers},
                }
            )
        except (KeyError, TypeError, ValueError, RuntimeError, IndexError, ArithmeticError):
            return False
        return found is True


def _plain(data: bytes | None) -> str | None:
    return None if data is None else data[:MOST_BYTES].decode("utf-8", "replace")


def _value(data: bytes | None) -> tuple[Any, bool]:
    """JSON as its members, everything else as text; and whether this is all that can be asked about."""
    text = _plain(data)
    inside = "" if text is None else text.removeprefix("\ufeff")
    if inside.lstrip()[:1] not in ("{", "["):
        return text, True
    try:
        parsed = json_in(_NO_CHARACTER.sub(r"\1\\ufffd", inside) if "\\u" in inside else inside)
    except NotTakenApart:
        return text, False
    return text if parsed is None else parsed, True


def _name(name: str) -> str:
    """CEL takes no header at all where one of them has a name that is not UTF-8: it would hide its record."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _first_line(error: Exception) -> str:
    line = str(error).partition("\n")[0]
    return line.rpartition("ERROR: ")[2] or line
