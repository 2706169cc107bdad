"""Sets of characters: a list of those of ASCII, and a question for each beyond it: those are too many.

The classes of a letter behind a backslash and those of POSIX are of ASCII alone, as in RE2.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits, punctuation
from typing import Final

Beyond = Callable[[str], bool]
_REMEMBERED: Final = 256
"""Classes are written again and again, and each is asked for all of ASCII when it is made."""


class Characters:
    __slots__ = ("_ascii", "_beyond")

    def __init__(self, of_ascii: Iterable[str], beyond: Beyond = lambda _: False) -> None:
        self._ascii = frozenset(of_ascii)
        self._beyond = beyond

    def __contains__(self, character: str) -> bool:
        return character in self._ascii if character.isascii() else self._beyond(character)

    def __or__(self, other: Characters) -> Characters:
        return Characters(self._ascii | other._ascii, lambda each: self._beyond(each) or other._beyond(each))

    def negated(self) -> Characters:
        return Characters(_ASCII - self._ascii, lambda each: not self._beyond(each))

    def in_either_case(self) -> Characters:
        of_ascii = {form for each in self._ascii for form in (each.lower(), each.upper())}
        for beyond, form in _FORMS_OF_ASCII.items():
            if self._beyond(beyond):
                of_ascii |= {form, form.upper()}
        return Characters(of_ascii, lambda each: any(form in self for form in _forms(each)))


_ASCII: Final = frozenset(map(chr, range(128)))
_FORMS_OF_ASCII: Final = {"\u212a": "k", "\u017f": "s"}
"""Letters beyond ASCII whose other form is a letter of it: the sign of Kelvin, and the long s."""


def _forms(character: str) -> set[str]:
    """The character, small and capital. What would become two characters is left out."""
    small, capital = character.lower(), character.upper()
    forms = {character, small, capital, capital.lower(), small.upper()}
    return {form for form in forms if len(form) == 1}


NONE: Final = Characters(())
ALL: Final = NONE.negated()
NO_NEWLINE: Final = Characters("\n").negated()
WORD: Final = Characters(ascii_letters + digits + "_")
_DIGITS: Final = Characters(digits)
_SPACE: Final = Characters("\t\n\f\r ")

PERL: Final[dict[str, Characters]] = {
    "d": _DIGITS,
    "D": _DIGITS.negated(),
    "s": _SPACE,
    "S": _SPACE.negated(),
    "w": WORD,
    "W": WORD.negated(),
}
"""By the letter behind the backslash."""

POSIX: Final[dict[str, Characters]] = {
    "alnum": Characters(ascii_letters + digits),
    "alpha": Characters(ascii_letters),
    "ascii": Characters(_ASCII),
    "blank": Characters("\t "),
    "cntrl": Characters([*map(chr, range(32)), "\x7f"]),
    "digit": _DIGITS,
    "graph": Characters(ascii_letters + digits + punctuation),
    "lower": Characters(ascii_lowercase),
    "print": Characters(ascii_letters + digits + punctuation + " "),
    "punct": Characters(punctuation),
    "space": Characters("\t\n\v\f\r "),
    "upper": Characters(ascii_uppercase),
    "word": WORD,
    "xdigit": Characters(digits + "abcdefABCDEF"),
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


def one(character: str) -> Characters:
    return Characters(character if character.isascii() else "", lambda each: each == character)


@lru_cache(_REMEMBERED)
def between(first: str, last: str) -> Characters:
    return _those(lambda each: first <= each <= last)


@lru_cache(_REMEMBERED)
def unicode_class(name: str) -> Characters | None:
    """Of \\p: a general category, or a script. None if there is no such thing."""
    if name == "Any":
        return ALL
    if name[:1] in _CATEGORIES and name[1:] in ("", *_CATEGORIES[name[:1]]):
        return _those(lambda each: unicodedata.category(each).startswith(name))
    if name == "Common":
        return _those(lambda each: unicodedata.category(each)[0] not in "LM")
    # A character's name begins with that of its script, except for those of Chinese. What is no script is
    # nobody's, if it looks like the name of one.
    if len(name) <= 2 or not name.replace("_", "").isalpha() or not name[0].isupper():
        return None
    begins = "CJK UNIFIED " if name == "Han" else name.upper().replace("_", " ") + " "
    return _those(lambda each: unicodedata.name(each, "").startswith(begins))


def _those(holds: Beyond) -> Characters:
    return Characters(filter(holds, _ASCII), holds)
