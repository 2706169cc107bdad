"""What every SASL mechanism is to a connection: tokens in, tokens out, at the end a principal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from headrace.core.errors import ClientError
from headrace.security.principal import Principal

MAX_NAME_BYTES: Final = 1024
"""Of a user, a token id or a distinguished name, in UTF-8."""
INVALID_CREDENTIALS: Final = "Authentication failed: invalid user or password"


class AuthenticationFailed(ClientError):
    """The text goes to the peer. It is the same for an unknown user and for a wrong password."""

    def __init__(self, text: str = INVALID_CREDENTIALS) -> None:
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Authenticated:
    principal: Principal
    lifetime_ms: int | None = None
    """What was left of the credential when it was looked up; None for one that does not expire."""
    token_id: str | None = None
    """Of the delegation token that proved the principal. Such a session may not create tokens."""


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """`reply` goes to the peer; `authenticated` is set by the last step and by no other."""

    reply: bytes
    authenticated: Authenticated | None = None

    def __repr__(self) -> str:
        return f"Step({len(self.reply)} bytes, authenticated={self.authenticated})"


class Exchange(Protocol):
    """One attempt of one peer. After a failure or the last step it is of no further use."""

    def step(self, token: bytes) -> Step:
        """Raises AuthenticationFailed."""
        ...
