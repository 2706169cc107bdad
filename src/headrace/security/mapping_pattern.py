"""A pattern of a mapping rule, by RE2: nobody can choose a name that takes long to match.

Kafka's engine is Java's. What RE2 does not have (lookaround, back references, possessive quantifiers) is
refused, and so is what both have with another meaning. Two differences stay, both beyond ASCII: what `(?i)`
takes for the same letter, and what `\\b` takes for a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

from headrace.core.errors import ConfigError

MAX_PATTERN: Final = 4096
MAX_MEMORY_BYTES: Final = 1 << 20
_FLAGS: Final = re.compile(r"\(\?[a-zA-Z]*-?[a-zA-Z]*U")
_ESCAPES_THAT_DIFFER: Final = frozenset("vC")
"""A vertical tab and any byte here; in Java a class of characters and an error."""


class Found(Protocol):
    """A place that a pattern has found."""

    def group(self, group: int, /) -> str | None: ...


@dataclass(frozen=True, slots=True)
class MappingPattern:
    text: str
    groups: int
    names: Mapping[str, int]
    _compiled: Any

    @classmethod
    def compile(cls, text: str, setting: str) -> Self:
        """`setting` is the property that it is of. Raises ConfigError."""
        # Two megabytes that only a listener with rules needs.
        import re2  # type: ignore[import-untyped]  # it has no types of its own

        problem = "is too long" if len(text) > MAX_PATTERN else _other_meaning(text)
        if problem is None:
            options = re2.Options()
            options.max_mem = MAX_MEMORY_BYTES
            options.log_errors = False
            try:
                compiled = re2.compile(text, options)
                return cls(text, compiled.groups, dict(compiled.groupindex), compiled)
            except re2.error:
                problem = "is not a regular expression that RE2 takes"
        raise ConfigError(
            f"{setting}: the pattern {text!r} {problem}. Rules run in linear time: "
            "without lookaround, back references, possessive quantifiers and nested classes."
        )

    def matches_whole(self, name: str) -> bool:
        return self._compiled.fullmatch(name) is not None

    def replaced(self, name: str, replacement: Callable[[Found], str], most: int | None = None) -> str:
        """Each place that it finds, or the first `most`. Goes on where the last place ends, one further if it
        was empty. So does Java."""
        parts: list[str] = []
        at = start = count = 0
        while (
            count != most and start <= len(name) and (found := self._compiled.search(name, start)) is not None
        ):
            parts += name[at : found.start()], replacement(found)
            at = found.end()
            start = at + (found.end() == found.start())
            count += 1
        return "".join((*parts, name[at:]))


def _other_meaning(text: str) -> str | None:
    """What Java would understand otherwise, if anything."""
    if _FLAGS.search(text):
        return "uses the flag U, which RE2 understands otherwise"
    in_class = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            if text[at + 1 : at + 2] in _ESCAPES_THAT_DIFFER:
                return f"uses {text[at : at + 2]}, which RE2 understands otherwise"
            if text[at + 1 : at + 2] == "Q":
                return "uses \\Q, which is not supported: escape each character"
            at += 1
        elif in_class and (char == "[" or text.startswith("&&", at)):
            return "nests or intersects character classes"
        elif char == "[":
            in_class = True
            at += text.startswith("^", at + 1)
            if text.startswith("]", at + 1):
                return "begins a character class with ]: escape it"
        elif char == "]":
            in_class = False
        at += 1
    return None
