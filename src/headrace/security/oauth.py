"""OAUTHBEARER on the server (RFC 7628): one message with a token, which somebody else has signed.

Whether the token is good is asked of `validate`. If it is not, the RFC wants an answer in JSON, a message of
the client that says nothing, and only then the failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from headrace.core.completion import Completion
from headrace.core.errors import ClientError
from headrace.security.mechanism import Authenticated, AuthenticationFailed, Step
from headrace.security.principal import user
from headrace.security.scram_messages import unescaped

MECHANISM: Final = "OAUTHBEARER"
MAX_MESSAGE_BYTES: Final = 32_768
MAX_PAIRS: Final = 17
"""The token, and as many extensions as a message of SCRAM may have. What they say is not used."""
INVALID_TOKEN: Final = '{"status":"invalid_token"}'
_MALFORMED: Final = "Authentication failed: malformed OAUTHBEARER message"

_HEADER: Final = re.compile(r"[ny],(?:a=((?:[^\x00-\x01=,]|=2C|=3D)+))?,")
_PAIR: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]+)")
_BEARER: Final = re.compile(r"(?i:bearer) +([A-Za-z0-9\-_~+/.]+=*)")


class InvalidBearerToken(ClientError):
    """The text says why, for the broker's log, and repeats nothing of the token. The peer is not told."""


class BearerIdentity(NamedTuple):
    name: str
    lifetime_ms: int
    """What is left of the token."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    authorization_id: str
    token: str = field(repr=False)

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Raises AuthenticationFailed."""
        if len(message) > MAX_MESSAGE_BYTES:
            raise AuthenticationFailed(_MALFORMED)
        try:
            text = bytes(message).decode()
        except UnicodeDecodeError:
            raise AuthenticationFailed(_MALFORMED) from None
        parts = text.split("\x01", MAX_PAIRS + 3)
        header = _HEADER.fullmatch(parts[0])
        # A separator behind each pair, and one more at the end.
        if header is None or not 4 <= len(parts) <= MAX_PAIRS + 3 or parts[-2:] != ["", ""]:
            raise AuthenticationFailed(_MALFORMED)
        bearer = _BEARER.fullmatch(_pairs(parts[1:-2]).get("auth", ""))
        if bearer is None:
            raise AuthenticationFailed(_MALFORMED)
        return cls(unescaped(header[1] or ""), bearer[1])


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        pair = _PAIR.fullmatch(text)
        if pair is None or pair[1] in pairs:
            raise AuthenticationFailed(_MALFORMED)
        pairs[pair[1]] = pair[2]
    return pairs


class OAuthExchange:
    """`validate` raises InvalidBearerToken. `need` says what has to be fetched before a token can be
    validated."""

    __slots__ = ("_is_over", "_need", "_reason", "_validate")

    def __init__(
        self,
        validate: Callable[[str], BearerIdentity],
        need: Callable[[str], Completion[None] | None] | None = None,
    ) -> None:
        self._validate = validate
        self._need = need
        self._reason: str | None = None
        """Why the token was refused; the client's next message ends the exchange."""
        self._is_over = False

    def prepare(self, token: bytes) -> Completion[None] | None:
        if self._need is None or self._is_over or self._reason is not None:
            return None
        try:
            return self._need(ClientMessage.parse(token).token)
        except AuthenticationFailed:
            return None

    def step(self, token: bytes) -> Step:
        if self._is_over:
            raise AuthenticationFailed
        # Over until the step has gone well: no error leaves an exchange that goes on.
        self._is_over = True
        if self._reason is not None:
            raise AuthenticationFailed(INVALID_TOKEN, self._reason)
        message = ClientMessage.parse(token)
        try:
            identity = self._validate(message.token)
        except InvalidBearerToken as refusal:
            self._reason = str(refusal)
            self._is_over = False
            return Step(INVALID_TOKEN.encode())
        if message.authorization_id not in ("", identity.name):
            raise AuthenticationFailed("Authentication failed: the authorization id is not the token's user")
        return Step(b"", Authenticated(user(identity.name), identity.lifetime_ms))
