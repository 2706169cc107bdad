"""Numbers, moments and strangers' text as people read them. None is never zero: it is said as not known."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

NOT_KNOWN: Final = "–"
"""In a cell of a table; beside it stands why, or the head of the page says so."""
_UNITS: Final = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_LAST_MS: Final = 253_402_300_799_000
"""Of the year 9999: later moments have no calendar."""
_HIDDEN: Final = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))
_CODE: Final = re.compile(r"`([^`]+)`")


def visible(text: str, *, keep: Iterable[str] = ()) -> str:
    """With whatever a browser would obey or hide as its number: marks that turn the direction of text, line
    breaks, zero widths. What remains is what a person sees."""
    if text.isascii() and text.isprintable():
        return text
    kept = frozenset(keep)
    return "".join(
        each if each in kept or unicodedata.category(each) not in _HIDDEN else f"⟨U+{ord(each):04X}⟩"
        for each in text
    )


def cut(text: str, most: int) -> str:
    """With its length where it is longer: clients give groups and themselves names of 32 KB."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def count(number: float | None) -> str:
    """12,345"""
    return NOT_KNOWN if number is None else f"{number:,.0f}"


def short(number: float | None) -> str:
    """1,234 and then 12.3 k, 4.5 M: three digits that count."""
    if number is None:
        return NOT_KNOWN
    size = abs(number)
    if size < 10_000:
        return f"{number:,.0f}" if size >= 100 or number == round(number) else f"{number:.1f}"
    for unit, factor in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if size < factor * 999.5 or unit == "T":
            value = number / factor
            return f"{value:.1f} {unit}" if abs(value) < 100 else f"{value:,.0f} {unit}"
    raise AssertionError("unreachable")


def rate(number: float | None) -> str:
    """Of records a second."""
    if number is None:
        return NOT_KNOWN
    return f"{short(number)}/s"


def size(number: float | None) -> str:
    if number is None:
        return NOT_KNOWN
    value = float(number)
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def duration(milliseconds: float | None) -> str:
    """In the largest unit and the next: 3 d 4 h, 5 min 2 s, 1.2 s, 300 ms."""
    if milliseconds is None:
        return NOT_KNOWN
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f} s"
    left = int(milliseconds) // 1000
    for unit, seconds, lower, lower_seconds in (
        ("d", 86_400, "h", 3_600),
        ("h", 3_600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if left >= seconds:
            rest = left % seconds // lower_seconds
            return f"{left // seconds} {unit}" + (f" {rest} {lower}" if rest else "")
    return f"{left} s"


def late(milliseconds: float | None) -> str:
    """Of a lag: nothing left to read is not a time."""
    return "none" if milliseconds == 0 else duration(milliseconds)


def days(number: float | None) -> str:
    if number is None:
        return NOT_KNOWN
    if number > 3650:
        return "over 10 years"
    return f"{number:.0f} days" if number >= 10 else f"{number:.1f} days"


def clock(milliseconds: int | None) -> str:
    """12:03:10, in UTC."""
    return NOT_KNOWN if milliseconds is None else _moment(milliseconds, "%H:%M:%S")


def moment(milliseconds: int | None) -> str:
    """2026-11-18 12:03:10, in UTC; the bare number where no calendar has it."""
    return NOT_KNOWN if milliseconds is None else _moment(milliseconds, "%Y-%m-%d %H:%M:%S")


def precise(milliseconds: int | None) -> str:
    """2026-11-18 12:03:10.123"""
    if milliseconds is None:
        return NOT_KNOWN
    whole = _moment(milliseconds, "%Y-%m-%d %H:%M:%S")
    return whole if whole == str(milliseconds) else f"{whole}.{milliseconds % 1000:03}"


def minute(milliseconds: int) -> str:
    return _moment(milliseconds, "%H:%M")


def _moment(milliseconds: int, form: str) -> str:
    if not 0 <= milliseconds <= _LAST_MS:
        return str(milliseconds)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime(form)


def counted(number: int, one: str, many: str | None = None) -> str:
    """1 record, 2 records."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def parts_of(sentence: str) -> list[tuple[str, bool]]:
    """(text, whether it is a command) of a sentence with commands between backquotes."""
    found = []
    for at, part in enumerate(_CODE.split(sentence)):
        if part:
            found.append((part, at % 2 == 1))
    return found
