"""Bearer tokens that an operator made, each for a user. Kept as digests: nothing here can show one."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from headrace.config.properties_file import read_properties
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError

SHORTEST: Final = 16


class Tokens:
    def __init__(self, by_user: Mapping[str, str]) -> None:
        """Raises ConfigError."""
        for user, token in by_user.items():
            if len(token) < SHORTEST:
                raise ConfigError(f"the token of {user} is shorter than {SHORTEST} characters")
        self._digests = [(user, _digest(token)) for user, token in by_user.items()]
        if len({digest for _, digest in self._digests}) != len(self._digests):
            raise ConfigError("two users have the same token")

    @classmethod
    def read(cls, path: str) -> Tokens:
        """Lines user=token. Raises ConfigError."""
        try:
            found = read_properties(path)
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from None
        if not found:
            raise ConfigError(f"{path} has no line user=token")
        try:
            return cls(found)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None

    def user_of(self, token: Secret) -> str | None:
        """Compares with all of them, so that the time tells nothing."""
        digest, found = _digest(token.reveal()), None
        for user, known in self._digests:
            if hmac.compare_digest(digest, known):
                found = user
        return found


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
