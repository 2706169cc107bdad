"""Sets of characters: those of ASCII that can be printed, and one that stands for all beyond ASCII.

Names of topics need fewer. Transactional ids may have any character: `.` and classes that exclude something
match those beyond ASCII, and nothing else does.
"""

from __future__ import annotations

import unicodedata
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import Final

Characters = frozenset[str]

BEYOND_ASCII: Final = "\uffff"
_SPACE: Final[Characters] = frozenset(" ")
_ASCII: Final[Characters] = frozenset(ascii_letters + digits + punctuation) | _SPACE
ALL: Final[Characters] = _ASCII | {BEYOND_ASCII}
NONE: Final[Characters] = frozenset()
WORD: Final[Characters] = frozenset(ascii_letters + digits + "_")
_DIGITS: Final[Characters] = frozenset(digits)
_LETTERS: Final[Characters] = frozenset(ascii_letters)

PERL: Final[dict[str, Characters]] = {
    "d": _DIGITS,
    "D": ALL - _DIGITS,
    "s": _SPACE,
    "S": ALL - _SPACE,
    "w": WORD,
    "W": ALL - WORD,
}
"""By the letter behind the backslash."""

POSIX: Final[dict[str, Characters]] = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": _ASCII,
    "blank": _SPACE,
    "cntrl": NONE,
    "digit": _DIGITS,
    "graph": _ASCII - _SPACE,
    "lower": frozenset(ascii_lowercase),
    "print": _ASCII,
    "punct": frozenset(punctuation),
    "space": _SPACE,
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
        return frozenset(each for each in _ASCII if unicodedata.category(each).startswith(name))
    if name == "Latin":
        return _LETTERS
    if name == "Common":
        return _ASCII - _LETTERS
    # The other scripts have no character of ASCII. Their names are words.
    return NONE if len(name) > 2 and name.replace("_", "").isalpha() and name[0].isupper() else None


def between(first: str, last: str) -> Characters:
    return frozenset(each for each in _ASCII if first <= each <= last)


def in_either_case(characters: Characters) -> Characters:
    return frozenset(other for each in characters for other in (each.lower(), each.upper()))
