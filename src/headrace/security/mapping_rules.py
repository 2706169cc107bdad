"""`ssl.principal.mapping.rules`: from the distinguished name of a certificate to the name of a principal.

The first rule counts whose pattern matches the whole name. What it gives is what Java's `replaceAll` gives:
each place that the pattern finds is replaced, which need not be the whole name (`.*` finds the empty end as
well).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from headrace.core.errors import ClientError, ConfigError
from headrace.security.mapping_pattern import MappingPattern
from headrace.security.mapping_replacement import Replacement
from headrace.security.mechanism import MAX_NAME_BYTES

_SETTING: Final = "ssl.principal.mapping.rules"
_DEFAULT: Final = "DEFAULT"
_RULE: Final = "RULE:"
_LINE_BREAKS: Final = frozenset("\n\r\x85\u2028\u2029")
"""A dot stands for some of them here and for none in Java, and none belongs into a log line."""


class NoRuleMatches(ClientError):
    """A certificate that names nobody here: its connection fails."""


@dataclass(frozen=True, slots=True)
class Rule:
    pattern: MappingPattern
    replacement: Replacement
    case: str
    """`L`, `U` or nothing."""

    def apply(self, name: str) -> str | None:
        if not self.pattern.matches_whole(name):
            return None
        changed = self.pattern.replaced(name, self.replacement)
        if self.case:
            return changed.lower() if self.case == "L" else changed.upper()
        return changed


@dataclass(frozen=True, slots=True)
class MappingRules:
    rules: tuple[Rule | None, ...]
    """None stands for DEFAULT: the name as it is."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Commas separate; empty rules are ignored. Raises ConfigError."""
        rules: list[Rule | None] = []
        rest = text.strip()
        while rest:
            if rest.startswith(","):
                rest = rest[1:].lstrip()
                continue
            rule, rest = _taken(rest)
            rules.append(rule)
            if rest and not rest.startswith(","):
                raise _wrong(f"after rule {len(rules)} a comma must follow, or nothing")
        if not rules:
            raise _wrong(f"it has no rule; {_DEFAULT} takes the distinguished name as it is")
        return cls(tuple(rules))

    def principal_name(self, distinguished_name: str) -> str:
        """Raises NoRuleMatches."""
        _check(distinguished_name, "distinguished name of the certificate")
        if not _LINE_BREAKS.isdisjoint(distinguished_name):
            raise NoRuleMatches("The distinguished name of the certificate has a line break")
        for rule in self.rules:
            name = distinguished_name if rule is None else rule.apply(distinguished_name)
            if name is not None:
                _check(name, f"name that {_SETTING} gives")
                return name
        raise NoRuleMatches(f"No rule of {_SETTING} matches {distinguished_name!r}")


def _check(name: str, what: str) -> None:
    if not name:
        raise NoRuleMatches(f"The {what} is empty")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise NoRuleMatches(f"The {what} has more than {MAX_NAME_BYTES} bytes")


def _taken(text: str) -> tuple[Rule | None, str]:
    """The first rule of `text`, and what follows it."""
    if text.startswith(_DEFAULT):
        return None, text.removeprefix(_DEFAULT).lstrip()
    if not text.startswith(_RULE):
        raise _wrong(
            f"a rule is {_DEFAULT} or {_RULE}pattern/replacement/, with L or U at the end to change case"
        )
    pattern, rest = _until_slash(text.removeprefix(_RULE))
    replacement, rest = _until_slash(rest)
    case = rest[:1] if rest[:1] in ("L", "U") else ""
    compiled = MappingPattern.compile(pattern, _SETTING)
    made = Replacement.parse(replacement, compiled.groups, compiled.names, _SETTING)
    return Rule(compiled, made, case), rest[len(case) :].lstrip()


def _until_slash(text: str) -> tuple[str, str]:
    """Up to the next slash that no backslash precedes. Escapes stay: the pattern and the replacement read
    them."""
    at = 0
    while at < len(text) and text[at] != "/":
        at += 2 if text[at] == "\\" else 1
    if at >= len(text):
        raise _wrong(f"a rule that begins with {_RULE} needs two slashes: {_RULE}pattern/replacement/")
    return text[:at], text[at + 1 :]


def _wrong(problem: str) -> ConfigError:
    return ConfigError(f"{_SETTING}: {problem}")
