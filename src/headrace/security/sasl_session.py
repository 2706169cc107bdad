"""What SASL allows on one connection, and when; re-authentication is KIP-368's.

A machine without frames and clock. Each method is one thing that the peer sent; None as its result means that
the connection is closed without an answer. Two rules hold in any order of events:

- `authenticated` is what the last step of an exchange said, and nothing else sets it;
- an error of any kind, also one of ours, leaves a session that takes nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from headrace.core.completion import Completion
from headrace.security.mechanism import Authenticated, AuthenticationFailed, Exchange, PreparedExchange

NONE: Final = 0
UNSUPPORTED_SASL_MECHANISM: Final = 33
ILLEGAL_SASL_STATE: Final = 34
SASL_AUTHENTICATION_FAILED: Final = 58

MAX_TOKEN_BYTES: Final = 65536
MAX_STEPS: Final = 16
"""Of one exchange; Kerberos takes four."""
MIN_REAUTH_INTERVAL_MS: Final = 1000
"""Between the starts of two re-authentications: more often they would only cost."""


class State(Enum):
    START = auto()
    """Nobody has authenticated: ApiVersions and a handshake are taken."""
    TOKENS = auto()
    """SaslAuthenticate is due, and nothing else."""
    RAW_TOKENS = auto()
    """The frames that follow are tokens without a header, because the handshake had version 0."""
    READY = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True)
class Handshake:
    error_code: int
    mechanisms: tuple[str, ...] = ()
    close_after: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class AuthenticateReply:
    error_code: int
    error_message: str | None = None
    token: bytes = b""
    session_lifetime_ms: int = 0
    close_after: bool = False

    def __repr__(self) -> str:
        return f"AuthenticateReply({self.error_code}, {self.error_message!r}, {len(self.token)} bytes)"


class SaslSession:
    """`mechanisms` makes a new exchange of each mechanism that the listener has; `reauth_ms` of zero leaves a
    session without an end, unless its credential has one.
    """

    __slots__ = (
        "_authenticated",
        "_began_ms",
        "_exchange",
        "_expires_at_ms",
        "_failure",
        "_mechanism",
        "_mechanisms",
        "_reauth_began_ms",
        "_reauth_ms",
        "_state",
        "_steps",
    )

    def __init__(self, mechanisms: Mapping[str, Callable[[], Exchange]], *, reauth_ms: int = 0) -> None:
        self._mechanisms = mechanisms
        self._reauth_ms = reauth_ms
        self._state = State.START
        self._mechanism = ""
        """Of the session; it stays when the peer authenticates again."""
        self._exchange: Exchange | None = None
        """None also while the peer authenticates again with another mechanism: its first token fails."""
        self._steps = 0
        self._began_ms = 0
        self._reauth_began_ms: int | None = None
        self._authenticated: Authenticated | None = None
        self._expires_at_ms: int | None = None
        self._failure: AuthenticationFailed | None = None

    @property
    def state(self) -> State:
        return self._state

    @property
    def authenticated(self) -> Authenticated | None:
        """Stays while the peer authenticates again: requests that came before are answered with it."""
        return self._authenticated

    @property
    def expires_at_ms(self) -> int | None:
        return self._expires_at_ms

    @property
    def failure(self) -> AuthenticationFailed | None:
        """Why a token was refused. The shell closes after a delay then, not at once."""
        return self._failure

    @property
    def is_reauthenticating(self) -> bool:
        return self._authenticated is not None and self._state in (State.TOKENS, State.RAW_TOKENS)

    def is_expired(self, now_ms: int) -> bool:
        return self._expires_at_ms is not None and now_ms > self._expires_at_ms

    def on_api_versions(self, now_ms: int) -> bool:
        """Whether it is answered; otherwise the connection is closed."""
        return self._state is State.START or self.on_other_request(now_ms)

    def on_other_request(self, now_ms: int) -> bool:
        """Whether it is served; otherwise the connection is closed."""
        if self._state is State.READY and not self.is_expired(now_ms):
            return True
        self._state = State.CLOSED
        return False

    def on_handshake(self, version: int, mechanism: str, now_ms: int) -> Handshake | None:
        if self._state is State.READY and not self._may_reauthenticate(now_ms):
            # Not a fault that ends the session, unless it has ended already.
            return Handshake(ILLEGAL_SASL_STATE) if self.on_other_request(now_ms) else None
        if self._state is State.TOKENS:
            self._state = State.CLOSED
            return Handshake(ILLEGAL_SASL_STATE, close_after=True)
        if self._state not in (State.START, State.READY):
            self._state = State.CLOSED
            return None
        is_again = self._state is State.READY
        self._state = State.CLOSED
        offered = tuple(self._mechanisms)
        if mechanism not in self._mechanisms:
            return Handshake(UNSUPPORTED_SASL_MECHANISM, offered, close_after=True)
        if is_again:
            self._reauth_began_ms = now_ms
        else:
            self._mechanism = mechanism
        self._exchange = self._mechanisms[mechanism]() if mechanism == self._mechanism else None
        self._began_ms, self._steps = now_ms, 0
        self._state = State.TOKENS if version >= 1 else State.RAW_TOKENS
        return Handshake(NONE, offered)

    def preparation(self, token: bytes) -> Completion[None] | None:
        """What the shell waits for before it says that this token has come; None if there is nothing. Nothing
        else of the peer is looked at meanwhile.
        """
        is_due = self._state in (State.TOKENS, State.RAW_TOKENS) and len(token) <= MAX_TOKEN_BYTES
        if is_due and isinstance(self._exchange, PreparedExchange):
            return self._exchange.prepare(token)
        return None

    def on_authenticate(self, version: int, token: bytes, now_ms: int) -> AuthenticateReply | None:
        """A SaslAuthenticate request. `session_lifetime_ms` has a place in its answer from version 1 on; the
        session ends then in any version.
        """
        if self._state is State.READY:
            if not self.on_other_request(now_ms):
                return None
            return AuthenticateReply(ILLEGAL_SASL_STATE, "The session is authenticated already")
        if self._state is not State.TOKENS:
            self._state = State.CLOSED
            return None
        try:
            reply = self._step(token, now_ms, State.TOKENS)
        except AuthenticationFailed as failure:
            self._failure = failure
            return AuthenticateReply(SASL_AUTHENTICATION_FAILED, str(failure), close_after=True)
        lifetime_ms = 0
        if version >= 1 and self.state is State.READY and self._expires_at_ms is not None:
            lifetime_ms = self._expires_at_ms - now_ms
        return AuthenticateReply(NONE, None, reply, lifetime_ms)

    def on_raw_token(self, token: bytes, now_ms: int) -> bytes | None:
        """A frame after a handshake of version 0. The answer is a frame too, an empty one at the end of
        PLAIN."""
        if self._state is not State.RAW_TOKENS:
            self._state = State.CLOSED
            return None
        try:
            return self._step(token, now_ms, State.RAW_TOKENS)
        except AuthenticationFailed as failure:
            self._failure = failure
            return None

    def _may_reauthenticate(self, now_ms: int) -> bool:
        if self._expires_at_ms is None:
            return False
        last = self._reauth_began_ms
        return last is None or now_ms - last >= MIN_REAUTH_INTERVAL_MS

    def _step(self, token: bytes, now_ms: int, unless_done: State) -> bytes:
        """Raises AuthenticationFailed."""
        # Closed until the step has gone well, whatever an exchange may raise.
        self._state = State.CLOSED
        self._steps += 1
        if self._exchange is None:
            raise AuthenticationFailed("Authentication failed: the mechanism of a session cannot change")
        if len(token) > MAX_TOKEN_BYTES or self._steps > MAX_STEPS:
            raise AuthenticationFailed("Authentication failed: too many or too large tokens")
        step = self._exchange.step(token)
        if step.authenticated is None:
            self._state = unless_done
        else:
            self._finish(step.authenticated, now_ms)
        return step.reply

    def _finish(self, outcome: Authenticated, now_ms: int) -> None:
        before = self._authenticated
        if before is not None and before.principal != outcome.principal:
            raise AuthenticationFailed("Authentication failed: the principal of a session cannot change")
        ends_ms = []
        if self._reauth_ms > 0:
            ends_ms.append(now_ms + self._reauth_ms)
        if outcome.lifetime_ms is not None:
            # Counted from the handshake, which was before the credential was looked up: no session outlives
            # it.
            ends_ms.append(self._began_ms + outcome.lifetime_ms)
        expires_at_ms = min(ends_ms, default=None)
        if expires_at_ms is not None and expires_at_ms <= now_ms:
            raise AuthenticationFailed("Authentication failed: the credential has expired")
        self._authenticated, self._expires_at_ms = outcome, expires_at_ms
        self._exchange = None
        self._state = State.READY
