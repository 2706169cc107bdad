"""The header `Authorization`: a user with a password, or a token. Bounded before anything is decoded."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from headrace.config.secret import Secret

LONGEST: Final = 8192
"""Characters of the whole header. A signed token can have thousands."""
LONGEST_USER: Final = 256


@dataclass(frozen=True, slots=True)
class Basic:
    user: str
    password: Secret


@dataclass(frozen=True, slots=True)
class Bearer:
    token: Secret


def parse_authorization(header: str | None) -> Basic | Bearer | None:
    """None where nobody is named, or the header cannot be read."""
    if header is None or len(header) > LONGEST:
        return None
    scheme, _, rest = header.strip().partition(" ")
    value = rest.strip()
    if not value:
        return None
    if scheme.lower() == "bearer":
        return Bearer(Secret(value))
    return _basic(value) if scheme.lower() == "basic" else None


def _basic(value: str) -> Basic | None:
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    user, colon, password = text.partition(":")
    if not colon or not user or len(user) > LONGEST_USER:
        return None
    return Basic(user, Secret(password))
