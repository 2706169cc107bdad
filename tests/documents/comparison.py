"""Does a command print what a page says? Spaces, times, ages and ids may differ; `...` is anything."""

from __future__ import annotations

import re
from typing import Final

_DIFFERENT: Final = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:\+\d\d:\d\d|Z)?", r"\d{4}-\d\d-\d\dT[\d:.+Z]+"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", r"[0-9a-f-]{36}"),
    (r"\b(?:\d+[dhms])+\b", r"(?:[\d.]+[dhms])+"),
)
_TOKEN: Final = re.compile("|".join(f"({shown})" for shown, _ in _DIFFERENT) + r"|(\s*\.\.\.\s*)|(\s+)")
_ANSWER: Final = re.compile(r"(\[y/N\]: )y\n?")


def answers(expected: str) -> str:
    """What a person has typed where a command asked."""
    return "y\n" * len(_ANSWER.findall(expected))


def matches(expected: str, printed: str) -> bool:
    return re.fullmatch(_pattern(_ANSWER.sub(r"\1", expected).strip()), printed.strip()) is not None


def _pattern(expected: str) -> str:
    parts, position = [], 0
    for match in _TOKEN.finditer(expected):
        parts.append(re.escape(expected[position : match.start()]))
        position = match.end()
        number = match.lastindex or 0
        if number <= len(_DIFFERENT):
            parts.append(_DIFFERENT[number - 1][1])
        else:
            parts.append(r"(?s:.*?)" if "..." in match.group() else r"\s+")
    return "".join(parts) + re.escape(expected[position:])
