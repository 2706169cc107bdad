"""Secrets: taken from files on the worker, and kept out of answers and logs.

A value `${file:/run/secrets/db.properties:password}` is the line `password=...` of that file, read when the
connector starts. The reference itself is no secret and is shown as it is. A secret that was written into the
configuration itself is answered as `[hidden]`; who sends `[hidden]` back changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from headrace.config.properties_file import read_properties
from headrace.config.secret import HIDDEN
from headrace.connect.settings import Settings
from headrace.core.errors import ConfigError, HeadraceError

_REFERENCE: Final = re.compile(r"\$\{file:([^:}]+):([^}]+)\}")
_ANY_REFERENCE: Final = re.compile(r"\$\{[A-Za-z0-9_-]+:[^}]*\}")
_SECRET_NAME: Final = re.compile(
    r"(?i)password|passwd|secret|token|credential|jaas|private[._-]?key|keystore[._-]?key$|api[._-]?key"
)
_LEAST: Final = 4
"""Shorter ones are in any text by chance."""


class SecretMissing(HeadraceError):
    """A reference that leads nowhere on this worker."""


def is_secret(name: str, settings: Settings | None) -> bool:
    if settings is not None and name in settings:
        return settings[name].is_secret
    return _SECRET_NAME.search(name) is not None


def is_reference(value: str) -> bool:
    """It says where a secret is, and is none."""
    return _ANY_REFERENCE.fullmatch(value.strip()) is not None


def shown(properties: Mapping[str, str], settings: Settings | None) -> dict[str, str]:
    """For answers."""
    return {
        name: HIDDEN if is_secret(name, settings) and value and not is_reference(value) else value
        for name, value in properties.items()
    }


def with_hidden_kept(
    properties: Mapping[str, str], before: Mapping[str, str] | None, settings: Settings | None
) -> dict[str, str]:
    """What a user interface sends back after it was shown the configuration: hidden values are as before."""
    return {
        name: before[name]
        if value == HIDDEN and before is not None and name in before and is_secret(name, settings)
        else value
        for name, value in properties.items()
    }


def resolved(properties: Mapping[str, str]) -> tuple[dict[str, str], frozenset[str]]:
    """With secrets in place of references, and the secrets. Reads files. Raises SecretMissing."""
    files: dict[str, dict[str, str]] = {}
    secrets: set[str] = set()

    def secret(match: re.Match[str]) -> str:
        path, key = match.group(1), match.group(2)
        if path not in files:
            try:
                files[path] = dict(read_properties(path))
            except (OSError, ConfigError) as error:
                raise SecretMissing(f"the secrets in {path} cannot be read: {error}") from None
        if key not in files[path]:
            raise SecretMissing(f"{path} has no line {key}=...: write one on every worker")
        secrets.add(files[path][key])
        return files[path][key]

    return {name: _REFERENCE.sub(secret, value) for name, value in properties.items()}, frozenset(secrets)


def secrets_of(properties: Mapping[str, str], settings: Settings | None) -> frozenset[str]:
    """Those that stand in a configuration itself."""
    return frozenset(value for name, value in properties.items() if is_secret(name, settings) and value)


def concealed(text: str, secrets: Iterable[str]) -> str:
    """The text without any of them, for traces."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _LEAST:
            text = text.replace(secret, HIDDEN)
    return text
