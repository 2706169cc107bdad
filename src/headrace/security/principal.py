"""Who a connection speaks for. Two principals are equal if type and name are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headrace.core.errors import ClientError

USER: Final = "User"
"""The only type that a client can authenticate as."""


class InvalidPrincipal(ClientError):
    """A text or bytes that name no principal."""


@dataclass(frozen=True, slots=True)
class Principal:
    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""Who speaks on a PLAINTEXT listener, or over TLS without a certificate."""


def user(name: str) -> Principal:
    return Principal(USER, name)


def parse_principal(text: str) -> Principal:
    """`User:alice`. Only the first colon separates: a name may hold more of them.

    Raises InvalidPrincipal.
    """
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise InvalidPrincipal(
            f"{text!r} is no principal: it is written as type:name, for example User:alice"
        )
    return Principal(kind, name)


def super_users(text: str) -> frozenset[Principal]:
    """The value of `super.users`. Semicolons separate, because distinguished names hold commas.

    Raises InvalidPrincipal.
    """
    return frozenset(parse_principal(part) for each in text.split(";") if (part := each.strip()))
