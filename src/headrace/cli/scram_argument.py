"""`--add-scram`, as kafka-storage has it: SCRAM-SHA-512=[name=admin,password=...]

A value with a comma or a bracket in it stands in double quotes. No text here repeats what was given: it holds
a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.security.scram_credential import (
    DEFAULT_ITERATIONS,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
)

_FORM: Final = "SCRAM-SHA-512=[name=NAME] or SCRAM-SHA-512=[name=NAME,password=PASSWORD]"
_WHOLE: Final = re.compile(r"\s*([A-Za-z0-9-]+)\s*=\s*\[(.*)\]\s*", re.DOTALL)
_FIELD: Final = re.compile(r'\s*([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\[\]]*))\s*(?:,|$)', re.DOTALL)
_FIELDS: Final = ("name", "password", "iterations")


@dataclass(frozen=True, slots=True)
class ScramUser:
    name: str
    mechanism: ScramMechanism
    iterations: int
    password: Secret | None
    """None: it comes another way."""


def parse_scram(text: str) -> ScramUser:
    """Raises ConfigError."""
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise ConfigError(f"--add-scram: write {_FORM}")
    mechanism = next((each for each in ScramMechanism if each.value == whole[1].upper()), None)
    if mechanism is None:
        known = " and ".join(each.value for each in ScramMechanism)
        raise ConfigError(f"--add-scram: there are {known}")
    fields = _fields(whole[2])
    if not fields.get("name"):
        raise ConfigError(f"--add-scram: the user has no name; write {_FORM}")
    password = fields.get("password")
    if password == "":
        raise ConfigError("--add-scram: the password is empty; leave it out to be asked for it")
    return ScramUser(
        fields["name"],
        mechanism,
        _iterations(fields.get("iterations")),
        None if password is None else Secret(password),
    )


def _fields(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        field = _FIELD.match(text, at)
        if field is None:
            raise ConfigError(
                f'--add-scram: put values with , or [ or ] or " into double quotes; write {_FORM}'
            )
        name, quoted, plain = field.groups()
        if name in ("salt", "saltedpassword"):
            raise ConfigError(f"--add-scram: {name} is made here; give the password")
        if name not in _FIELDS or name in found:  # perhaps a piece of a password, so it is not repeated
            raise ConfigError(f"--add-scram: there are {', '.join(_FIELDS)}, each once; write {_FORM}")
        found[name] = plain.strip() if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = field.end()
    return found


def _iterations(text: str | None) -> int:
    if text is None:
        return DEFAULT_ITERATIONS
    if not text.isdecimal() or not MIN_ITERATIONS <= int(text) <= MAX_ITERATIONS:
        raise ConfigError(f"--add-scram: iterations is a number from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    return int(text)
