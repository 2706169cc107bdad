"""Sets of characters. Only those that may stand in the name of a topic count: no other can ever match."""

from __future__ import annotations

import unicodedata
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Final

Characters = frozenset[str]

ALL: Final[Characters] = frozenset(ascii_letters + digits + "._-")
NONE: Final[Characters] = frozenset()
WORD: Final[Characters] = frozenset(ascii_letters + digits + "_")
_DIGITS: Final[Characters] = frozenset(digits)
_LETTERS: Final[Characters] = frozenset(ascii_letters)

PERL: Final[dict[str, Characters]] = {
    "d": _DIGITS,
    "D": ALL - _DIGITS,
    "s": NONE,
    "S": ALL,
    "w": WORD,
    "W": ALL - WORD,
}
"""By the letter behind the backslash."""

POSIX: Final[dict[str, Characters]] = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": ALL,
    "blank": NONE,
    "cntrl": NONE,
    "digit": _DIGITS,
    "graph": ALL,
    "lower": frozenset(ascii_lowercase),
    "print": ALL,
    "punct": frozenset("._-"),
    "space": NONE,
    "upper": frozenset(ascii_uppercase),
    "word": WORD,
    "xdigit": frozenset(digits + "abcdefABCDEF"),
}

_CATEGORIES: Final = {
    "C": "cfos",
    "L": "lmotu",
    "M": "cen",
    "N": "dlo",
    "P": "cdefios",
    "S": "ckmo",
    "Z": "lps",
}
"""The general categories: by their first letter, the second ones."""


def unicode_class(name: str) -> Characters | None:
    """Of \\p: a general category, or a script. None if there is no such thing."""
    if name == "Any":
        return ALL
    if name[:1] in _CATEGORIES and name[1:] in ("", *_CATEGORIES[name[:1]]):
        return frozenset(each for each in ALL if unicodedata.category(each).startswith(name))
    if name == "Latin":
        return _LETTERS
    if name == "Common":
        return ALL - _LETTERS
    # The other scripts have no character in common with names of topics. Their names are words.
    return NONE if len(name) > 2 and name.replace("_", "").isalpha() and name[0].isupper() else None


def between(first: str, last: str) -> Characters:
    return frozenset(each for each in ALL if first <= each <= last)


def in_either_case(characters: Characters) -> Characters:
    return frozenset(other for each in characters for other in (each.lower(), each.upper()))
