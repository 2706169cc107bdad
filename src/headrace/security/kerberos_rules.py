"""`sasl.kerberos.principal.to.local.rules`: from the name of a Kerberos principal to the name of a user.

A rule is DEFAULT or `RULE:[n:format](match)s/pattern/replacement/g/L`. It is for names of n parts. The format
makes a text of the realm (`$0`) and the parts (`$1`, `$2`), the whole of which has to match; the substitution
changes it, and L or U its case. The first rule that applies counts. Commas separate rules before they come
here, so none can hold one: as in Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from headrace.core.errors import ConfigError
from headrace.security.kerberos_name import KerberosName, UnknownKerberosName
from headrace.security.mapping_pattern import MappingPattern
from headrace.security.mapping_replacement import Replacement
from headrace.security.mechanism import MAX_NAME_BYTES

SETTING: Final = "sasl.kerberos.principal.to.local.rules"
MAX_RULES: Final = 1000
_DEFAULT: Final = "DEFAULT"
_RULE: Final = re.compile(
    r"RULE:\[(?P<parts>[0-9]{1,9}):(?P<format>[^\]]*)\]"
    r"(?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?"
    r"/?(?P<case>[LU])?"
)
_PARAMETER: Final = re.compile(r"\$([0-9]*)")
_FORM: Final = "RULE:[n:format](match)s/pattern/replacement/g, with /L or /U at the end to change case"


@dataclass(frozen=True, slots=True)
class _Substitution:
    pattern: MappingPattern
    replacement: Replacement
    is_repeated: bool

    def apply(self, text: str) -> str:
        return self.pattern.replaced(text, self.replacement, most=None if self.is_repeated else 1)


@dataclass(frozen=True, slots=True)
class KerberosRule:
    parts: int
    """Of the names that it is for, without the realm."""
    format: tuple[str | int, ...]
    """Literal text, or the number of a parameter."""
    match: MappingPattern | None
    substitution: _Substitution | None
    case: str
    """`L`, `U` or nothing."""

    def apply(self, name: KerberosName) -> str | None:
        """None if it is not for this name. Raises UnknownKerberosName."""
        parameters = name.parameters
        if len(parameters) - 1 != self.parts:
            return None
        made = "".join(each if isinstance(each, str) else parameters[each] for each in self.format)
        _check_length(made)
        if self.match is not None and not self.match.matches_whole(made):
            return None
        if self.substitution is not None:
            made = self.substitution.apply(made)
        # What a rule leaves of a host or a realm must not become part of a user's name.
        if "/" in made or "@" in made:
            raise UnknownKerberosName(f"a rule of {SETTING} makes {made!r}, which is not a simple name")
        if self.case:
            return made.lower() if self.case == "L" else made.upper()
        return made


@dataclass(frozen=True, slots=True)
class KerberosRules:
    rules: tuple[KerberosRule | None, ...]
    """None stands for DEFAULT: the first part of a name in the default realm."""
    default_realm: str

    @classmethod
    def parse(cls, texts: Sequence[str], default_realm: str) -> Self:
        """Raises ConfigError."""
        if not texts or len(texts) > MAX_RULES:
            raise _wrong(f"it has no rule, or more than {MAX_RULES}; {_DEFAULT} is the usual one")
        return cls(tuple(None if each == _DEFAULT else _parsed(each) for each in texts), default_realm)

    def local_name(self, name: KerberosName) -> str:
        """Raises UnknownKerberosName."""
        for rule in self.rules:
            if rule is None:
                made = name.service if name.realm == self.default_realm else None
            else:
                made = rule.apply(name)
            if made is not None:
                if not made:
                    raise UnknownKerberosName(f"a rule of {SETTING} makes an empty name")
                _check_length(made)
                return made
        raise UnknownKerberosName(f"no rule of {SETTING} applies to {name}")


def _check_length(name: str) -> None:
    if len(name.encode()) > MAX_NAME_BYTES:
        raise UnknownKerberosName(f"a rule of {SETTING} makes a name of more than {MAX_NAME_BYTES} bytes")


def _parsed(text: str) -> KerberosRule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise _wrong(f"the rule {text!r} is neither {_DEFAULT} nor {_FORM}")
    parts = int(found["parts"])
    substitution = None
    if found["pattern"] is not None:
        pattern = MappingPattern.compile(found["pattern"], SETTING)
        replacement = Replacement.parse(
            found["replacement"], pattern.groups, pattern.names, SETTING, beyond_is_literal=False
        )
        substitution = _Substitution(pattern, replacement, found["all"] is not None)
    return KerberosRule(
        parts,
        _format(text, found["format"], parts),
        None if found["match"] is None else MappingPattern.compile(found["match"], SETTING),
        substitution,
        found["case"] or "",
    )


def _format(rule: str, text: str, parts: int) -> tuple[str | int, ...]:
    """Kafka notices a wrong parameter at the first login; here it stops the start."""
    pieces: list[str | int] = []
    at = 0
    for found in _PARAMETER.finditer(text):
        pieces.append(text[at : found.start()])
        if not 1 <= len(found[1]) <= 9 or int(found[1]) > parts:
            raise _wrong(f"the rule {rule!r} is for names of {parts} parts and uses {found[0]}")
        pieces.append(int(found[1]))
        at = found.end()
    return tuple(each for each in (*pieces, text[at:]) if each != "")


def _wrong(problem: str) -> ConfigError:
    return ConfigError(f"{SETTING}: {problem}")
