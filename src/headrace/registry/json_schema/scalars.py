"""Limits on strings, numbers and counts: whether a new limit takes all that an old one took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

Plain = Mapping[str, Any]
Found = tuple[str, str]
"""The type of a difference, and the keyword where it is."""

_COUNTS: Final = {
    "string": ("maxLength", "minLength", "LENGTH"),
    "array": ("maxItems", "minItems", "ITEMS"),
    "object": ("maxProperties", "minProperties", "PROPERTIES"),
}


def differences(kind: str, old: Plain, new: Plain) -> Iterator[Found]:
    """Of values of one JSON type."""
    if kind in _COUNTS:
        largest, least, subject = _COUNTS[kind]
        yield from _upper(f"MAX_{subject}", largest, old.get(largest), new.get(largest))
        smallest = new.get(least) or None  # none is no limit
        yield from _lower(f"MIN_{subject}", least, old.get(least), smallest)
    if kind == "string" and new.get("pattern") is not None and new["pattern"] != old.get("pattern"):
        yield ("PATTERN_ADDED" if old.get("pattern") is None else "PATTERN_CHANGED"), "pattern"
    if kind == "array" and new.get("uniqueItems") and not old.get("uniqueItems"):
        yield "UNIQUE_ITEMS_ADDED", "uniqueItems"
    if kind in ("number", "integer"):
        yield from _number(old, new)


def _number(old: Plain, new: Plain) -> Iterator[Found]:
    for word, sign in (("maximum", 1), ("minimum", -1)):
        exclusive = "exclusive" + word.capitalize()
        before, now = _limit(old, word, exclusive, sign), _limit(new, word, exclusive, sign)
        if now is None or (before is not None and before <= now):
            continue
        name = word.upper() if now[1] else f"EXCLUSIVE_{word.upper()}"
        direction = "ADDED" if before is None else "DECREASED" if sign == 1 else "INCREASED"
        yield f"{name}_{direction}", word if now[1] else exclusive
    yield from _multiple(old.get("multipleOf"), new.get("multipleOf"))


def _limit(schema: Plain, word: str, exclusive: str, sign: int) -> tuple[Fraction, bool] | None:
    """The tighter of both kinds: (limit in the direction of growth, whether it is itself allowed)."""
    limits = []
    value, strict = schema.get(word), schema.get(exclusive)
    if value is not None:
        limits.append((sign * Fraction(str(value)), strict is not True))  # draft 4 has a flag in its place
    if strict is not None and not isinstance(strict, bool):
        limits.append((sign * Fraction(str(strict)), False))
    return min(limits) if limits else None


def _multiple(old: Any, new: Any) -> Iterator[Found]:
    if new is None:
        return
    if old is None:
        yield "MULTIPLE_OF_ADDED", "multipleOf"
    elif (Fraction(str(old)) / Fraction(str(new))).denominator != 1:
        larger = (Fraction(str(new)) / Fraction(str(old))).denominator == 1
        yield f"MULTIPLE_OF_{'EXPANDED' if larger else 'CHANGED'}", "multipleOf"


def _upper(name: str, keyword: str, old: Any, new: Any) -> Iterator[Found]:
    if new is not None and (old is None or old > new):
        yield f"{name}_{'ADDED' if old is None else 'DECREASED'}", keyword


def _lower(name: str, keyword: str, old: Any, new: Any) -> Iterator[Found]:
    if new is not None and (old is None or old < new):
        yield f"{name}_{'ADDED' if old is None else 'INCREASED'}", keyword
