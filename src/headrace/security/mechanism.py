"""What every SASL mechanism is to a connection: tokens in, tokens out, at the end a principal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from headrace.core.completion import Completion
from headrace.core.errors import ClientError
from headrace.security.principal import Principal

MAX_NAME_BYTES: Final = 1024
"""Of a user, a token id or a distinguished name, in UTF-8."""
INVALID_CREDENTIALS: Final = "Authentication failed: invalid user or password"


class AuthenticationFailed(ClientError):
    """The text goes to the peer. It is the same for an unknown user and for a wrong password. `reason` is for
    the broker's log alone."""

    def __init__(self, text: str = INVALID_CREDENTIALS, reason: str | None = None) -> None:
        super().__init__(text)
        self.reason = text if reason is None else reason


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


@runtime_checkable
class PreparedExchange(Exchange, Protocol):
    """An exchange with steps that need something first that would hold up the loop."""

    def prepare(self, token: bytes) -> Completion[None] | None:
        """What has to be done before `step` gets the same token; None if nothing has. Raises nothing: what is
        wrong with the token, the step says.
        """
        ...
