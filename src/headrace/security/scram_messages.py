"""The four messages of SCRAM (RFC 5802, section 7) as text. What is signed is what was sent, never a rebuilt
copy.

Nothing here is constant in time, and nothing needs to be: no secret is compared.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from headrace.security.mechanism import MAX_NAME_BYTES, AuthenticationFailed

MAX_MESSAGE_BYTES: Final = 8192
MAX_NONCE: Final = 1024
MAX_EXTENSIONS: Final = 16
MAX_SALT_BYTES: Final = 1024
TOKEN_EXTENSION: Final = "tokenauth"

_PRINTABLE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
"""A nonce: printable, without commas."""
_ITERATIONS: Final = re.compile(r"[1-9][0-9]{0,8}")
_EXTENSION: Final = re.compile(r"[A-Za-z]+")
_SASL_NAME: Final = re.compile(r"(?:[^\x00=,]|=2C|=3D)+")
"""Tried one character at a time, without a choice to come back to: its time grows with the text alone."""


class Malformed(AuthenticationFailed):
    """A message that is not SCRAM, or not the one that is due. The text holds nothing of the message."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Authentication failed: malformed SCRAM {message}")


@dataclass(frozen=True, slots=True)
class ClientFirst:
    gs2_header: str
    authorization_id: str
    name: str
    nonce: str
    extensions: Mapping[str, str]
    bare: str
    """What follows the GS2 header, as it was sent."""

    @property
    def wants_token(self) -> bool:
        return self.extensions.get(TOKEN_EXTENSION, "").lower() == "true"

    @classmethod
    def parse(cls, token: bytes) -> Self:
        what = "client first message"
        parts = _text(token, what).split(",", 2)
        # `p` asks for channel binding, which no listener offers; `y` says that the client could.
        if len(parts) != 3 or parts[0] not in ("n", "y"):
            raise Malformed(what)
        flag, authorization, bare = parts
        fields = bare.split(",")
        # A mandatory extension (`m=`) would stand first; the RFC wants it refused.
        if len(fields) < 2 or len(fields) > 2 + MAX_EXTENSIONS:
            raise Malformed(what)
        return cls(
            gs2_header=f"{flag},{authorization},",
            authorization_id=_name(_value(authorization, "a", what), what) if authorization else "",
            name=_name(_value(fields[0], "n", what), what),
            nonce=_nonce(_value(fields[1], "r", what), what),
            extensions=_extensions(fields[2:], what),
            bare=bare,
        )


@dataclass(frozen=True, slots=True)
class ServerFirst:
    nonce: str
    salt: bytes = field(repr=False)
    iterations: int

    def __str__(self) -> str:
        return f"r={self.nonce},s={encoded(self.salt)},i={self.iterations}"

    @classmethod
    def parse(cls, token: bytes) -> Self:
        what = "server first message"
        fields = _text(token, what).split(",", 3)
        if len(fields) < 3:
            raise Malformed(what)
        iterations = _value(fields[2], "i", what)
        salt = _decoded(_value(fields[1], "s", what), what)
        if not _ITERATIONS.fullmatch(iterations) or not 0 < len(salt) <= MAX_SALT_BYTES:
            raise Malformed(what)
        return cls(_nonce(_value(fields[0], "r", what), what), salt, int(iterations))


@dataclass(frozen=True, slots=True)
class ClientFinal:
    channel_binding: bytes
    nonce: str
    proof: bytes = field(repr=False)
    without_proof: str
    """As it was sent."""

    @classmethod
    def parse(cls, token: bytes) -> Self:
        what = "client final message"
        without_proof, _, proof = _text(token, what).rpartition(",")
        fields = without_proof.split(",")
        if not 2 <= len(fields) <= 2 + MAX_EXTENSIONS:
            raise Malformed(what)
        _extensions(fields[2:], what)
        return cls(
            channel_binding=_decoded(_value(fields[0], "c", what), what),
            nonce=_nonce(_value(fields[1], "r", what), what),
            proof=_decoded(_value(proof, "p", what), what),
            without_proof=without_proof,
        )


def parse_server_final(token: bytes) -> bytes:
    """The server's signature. Raises AuthenticationFailed where the server says an error instead."""
    what = "server final message"
    first = _text(token, what).split(",", 1)[0]
    if first.startswith("e="):
        raise AuthenticationFailed("Authentication failed: the server refused the credentials")
    return _decoded(_value(first, "v", what), what)


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def escaped(name: str) -> str:
    """A user's name as a message holds it: a comma would end it."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(value: str) -> str:
    # In this order: what `=3D` becomes must not be read as the start of another escape.
    return value.replace("=2C", ",").replace("=3D", "=")


def _text(token: bytes, what: str) -> str:
    if len(token) > MAX_MESSAGE_BYTES:
        raise Malformed(what)
    try:
        return bytes(token).decode()
    except UnicodeDecodeError:
        raise Malformed(what) from None


def _value(attribute: str, letter: str, what: str) -> str:
    key, equals, value = attribute.partition("=")
    if key != letter or not equals:
        raise Malformed(what)
    return value


def _name(value: str, what: str) -> str:
    if not _SASL_NAME.fullmatch(value):
        raise Malformed(what)
    name = unescaped(value)
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Malformed(what)
    return name


def _nonce(value: str, what: str) -> str:
    if len(value) > MAX_NONCE or not _PRINTABLE.fullmatch(value):
        raise Malformed(what)
    return value


def _extensions(fields: list[str], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in fields:
        key, equals, value = each.partition("=")
        if not equals or not value or key in found or not _EXTENSION.fullmatch(key):
            raise Malformed(what)
        found[key] = value
    return found


def _decoded(value: str, what: str) -> bytes:
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Malformed(what) from None
