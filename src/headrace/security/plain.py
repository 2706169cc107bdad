"""PLAIN (RFC 4616): user and password as they are. Only TLS keeps them from others."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from headrace.security.mechanism import MAX_NAME_BYTES, Authenticated, AuthenticationFailed, Step
from headrace.security.principal import user

MECHANISM: Final = "PLAIN"
MAX_TOKEN_BYTES: Final = 8192
_USER_OPTION: Final = "user_"
_NOBODYS_PASSWORD: Final = b"compared with what a peer sends for a user that does not exist"


def passwords(options: Mapping[str, str]) -> dict[str, bytes]:
    """The users of a login module: one option `user_NAME="password"` for each."""
    return {
        name.removeprefix(_USER_OPTION): value.encode()
        for name, value in options.items()
        if name.startswith(_USER_OPTION) and name != _USER_OPTION and value
    }


class PlainExchange:
    __slots__ = ("_is_over", "_passwords")

    def __init__(self, passwords: Mapping[str, bytes]) -> None:
        self._passwords = passwords
        self._is_over = False

    def step(self, token: bytes) -> Step:
        if self._is_over:
            raise AuthenticationFailed
        self._is_over = True
        authorization_id, name, password = _parsed(token)
        expected = self._passwords.get(name)
        is_right = _same(password, _NOBODYS_PASSWORD if expected is None else expected)
        # Who knows the constant above is still nobody.
        if not is_right or not expected:
            raise AuthenticationFailed
        if authorization_id not in ("", name):
            raise AuthenticationFailed("Authentication failed: the authorization id is not the user")
        return Step(b"", Authenticated(user(name)))


def _parsed(token: bytes) -> tuple[str, str, bytes]:
    if len(token) > MAX_TOKEN_BYTES:
        raise AuthenticationFailed
    parts = bytes(token).split(b"\0", 3)
    if len(parts) != 3 or not parts[1] or not parts[2] or len(parts[1]) > MAX_NAME_BYTES:
        raise AuthenticationFailed
    try:
        return parts[0].decode(), parts[1].decode(), parts[2]
    except UnicodeDecodeError:
        raise AuthenticationFailed from None


def _same(given: bytes, expected: bytes) -> bool:
    """Compares digests, so that the time does not tell how long the password is."""
    return hmac.compare_digest(sha256(given).digest(), sha256(expected).digest())
