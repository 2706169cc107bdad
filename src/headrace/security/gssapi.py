"""GSSAPI on the server (RFC 4752): the tokens of a Kerberos context until it is established, then the choice
of a security layer. The one that is offered is none: TLS protects what follows, if the listener has it.

The context is somebody else's; its calls may take long, so a thread makes the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Protocol

from headrace.core.errors import ClientError
from headrace.security.kerberos_name import KerberosName, UnknownKerberosName
from headrace.security.mechanism import MAX_NAME_BYTES, Authenticated, AuthenticationFailed, Step
from headrace.security.principal import user

MECHANISM: Final = "GSSAPI"
REFUSED: Final = "Authentication failed: the Kerberos login was refused"
"""All that a peer is told. Why is for the broker's log."""
MAX_TOKEN_BYTES: Final = 65_536
"""A ticket of a directory with many groups has some 48 KiB."""
MAX_CONTEXT_TOKENS: Final = 4
"""Kerberos takes one or two."""
MAX_WRAPPED_BYTES: Final = 4 + MAX_NAME_BYTES + 512
NO_LAYER: Final = 1
OFFER: Final = bytes([NO_LAYER, 0, 0, 0])
"""The layers that may be chosen, and the largest message of a layer: there is none."""


class ContextRefused(ClientError):
    """The library does not accept a token. The text is for the broker's log."""


class SecurityContext(Protocol):
    """One attempt of one peer. Each call may raise ContextRefused, after which none is made."""

    def accept(self, token: bytes) -> bytes:
        """What the peer gets; empty if nothing."""
        ...

    @property
    def peer(self) -> str | None:
        """The name that the peer has proved, once the context is established."""
        ...

    def wrap(self, message: bytes) -> bytes: ...

    def unwrap(self, token: bytes) -> bytes: ...


class _Due(Enum):
    CONTEXT_TOKEN = auto()
    EMPTY = auto()
    """The context is established, and its last token was ours: the peer has nothing to say."""
    CHOICE = auto()
    NOTHING = auto()


class GssapiExchange:
    """`local_name` raises UnknownKerberosName."""

    __slots__ = ("_context", "_due", "_local_name", "_name", "_proved", "_tokens")

    def __init__(self, context: SecurityContext, local_name: Callable[[KerberosName], str]) -> None:
        self._context = context
        self._local_name = local_name
        self._due = _Due.CONTEXT_TOKEN
        self._tokens = 0
        self._proved: str | None = None
        """The name of the principal, as the context has it."""
        self._name = ""
        """Of the user."""

    def step(self, token: bytes) -> Step:
        # Nothing is due until the step has gone well: no error leaves an exchange that goes on.
        due, self._due = self._due, _Due.NOTHING
        try:
            if due is _Due.CONTEXT_TOKEN:
                return self._on_context_token(token)
            if due is _Due.EMPTY:
                return self._on_empty(token)
            if due is _Due.CHOICE:
                return self._on_choice(token)
        except (ContextRefused, UnknownKerberosName) as refusal:
            raise AuthenticationFailed(REFUSED, f"Kerberos: {refusal}") from None
        raise AuthenticationFailed(REFUSED)

    def _on_context_token(self, token: bytes) -> Step:
        self._tokens += 1
        if len(token) > MAX_TOKEN_BYTES or self._tokens > MAX_CONTEXT_TOKENS:
            raise ContextRefused("too many or too large tokens")
        reply = self._context.accept(token)
        self._proved = self._context.peer
        if self._proved is None:
            if not reply:
                raise ContextRefused("the context needs a further token, and has none for the peer")
            self._due = _Due.CONTEXT_TOKEN
            return Step(reply)
        self._name = self._local_name(KerberosName.parse(self._proved))
        if not reply:
            return self._offered()
        self._due = _Due.EMPTY
        return Step(reply)

    def _on_empty(self, token: bytes) -> Step:
        if token:
            raise ContextRefused("a token where the context was established")
        return self._offered()

    def _offered(self) -> Step:
        reply = self._context.wrap(OFFER)
        self._due = _Due.CHOICE
        return Step(reply)

    def _on_choice(self, token: bytes) -> Step:
        if len(token) > MAX_WRAPPED_BYTES:
            raise ContextRefused("too large a token for the choice of a security layer")
        choice = self._context.unwrap(token)
        # The size that follows the layer is that of a layer's messages: without one it says nothing.
        if not 4 <= len(choice) <= 4 + MAX_NAME_BYTES or choice[0] != NO_LAYER:
            raise ContextRefused("the peer chooses a security layer, and none is offered")
        if choice[4:] not in (b"", (self._proved or "").encode()):
            raise ContextRefused("the authorization id is not the principal of the ticket")
        return Step(b"", Authenticated(user(self._name)))
