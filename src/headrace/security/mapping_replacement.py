"""The replacement of a mapping rule, in Java's syntax: `$1`, `${name}`, and `\\` before a literal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from headrace.core.errors import ConfigError
from headrace.security.mapping_pattern import Found

_DIGITS: Final = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Replacement:
    parts: tuple[str | int, ...]
    """Literal text, or the number of a group."""

    def __call__(self, found: Found) -> str:
        # A group that took no part in the match is empty.
        return "".join(each if isinstance(each, str) else found.group(each) or "" for each in self.parts)

    @classmethod
    def parse(
        cls,
        text: str,
        groups: int,
        names: Mapping[str, int],
        setting: str,
        *,
        beyond_is_literal: bool = True,
    ) -> Self:
        """`$n` beyond the groups is literal, if the pattern has groups at all, or else refused. `setting` is
        the property that it is of. Raises ConfigError."""
        try:
            return cls(tuple(_parts(text, groups, names, beyond_is_literal)))
        except _Wrong as problem:
            raise ConfigError(f"{setting}: the replacement {text!r} {problem}") from None


class _Wrong(Exception):
    pass


def _parts(text: str, groups: int, names: Mapping[str, int], beyond_is_literal: bool) -> list[str | int]:
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            parts.append(text[at + 1])
            at += 2
        elif text[at] == "$":
            part, at = _reference(text, at, groups, names)
            if isinstance(part, str) and not beyond_is_literal:
                raise _Wrong("refers to a group that the pattern does not have")
            parts.append(part)
        else:
            parts.append(text[at])
            at += 1
    return parts


def _reference(text: str, at: int, groups: int, names: Mapping[str, int]) -> tuple[str | int, int]:
    """What the `$` at `at` stands for, and where the text goes on."""
    if text.startswith("{", at + 1):
        name, brace, _ = text[at + 2 :].partition("}")
        if not brace or name not in names:
            raise _Wrong("names a group that the pattern does not have")
        return names[name], at + 3 + len(name)
    end = at + 1
    if text[end : end + 1] not in _DIGITS:
        raise _Wrong("has a $ without a group; a literal one is \\$")
    number = int(text[end])
    end += 1
    if number > groups:
        if groups == 0:
            raise _Wrong("refers to a group, and the pattern has none")
        return text[at:end], end
    # As many digits as still name a group: `$12` is group 1 and a 2 where there are fewer than twelve.
    while text[end : end + 1] in _DIGITS and number * 10 + int(text[end]) <= groups:
        number = number * 10 + int(text[end])
        end += 1
    return number, end
