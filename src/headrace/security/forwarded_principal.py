"""Envelope's `request_principal`: a version, then Kafka's DefaultPrincipalData.

The one file of this package that knows the protocol: the message is generated there.
"""

from __future__ import annotations

from typing import Final

from headrace.core.errors import UnsupportedVersion
from headrace.protocol.messages.default_principal_data import DefaultPrincipalData
from headrace.protocol.primitives import ProtocolError
from headrace.security.principal import InvalidPrincipal, Principal

MAX_PRINCIPAL_BYTES: Final = 4096
"""Of a whole encoded principal. A name has at most 1 KiB when it comes from a certificate."""
_VERSION_BYTES: Final = 2


def encode_principal(principal: Principal, token_authenticated: bool = False) -> bytes:
    """Raises InvalidPrincipal for a principal that `decode_principal` would refuse."""
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=token_authenticated
    )
    version = DefaultPrincipalData.MAX_VERSION
    try:
        raw = version.to_bytes(_VERSION_BYTES, "big") + data.to_bytes(version)
    except ValueError:
        raise InvalidPrincipal("the principal cannot be encoded") from None
    if len(raw) > MAX_PRINCIPAL_BYTES or not (principal.type and principal.name):
        raise InvalidPrincipal("the principal is empty or too long to forward")
    return raw


def decode_principal(raw: bytes) -> tuple[Principal, bool]:
    """The principal, and whether a delegation token proved it. Raises InvalidPrincipal."""
    if not _VERSION_BYTES < len(raw) <= MAX_PRINCIPAL_BYTES:
        raise InvalidPrincipal(f"a forwarded principal of {len(raw)} bytes")
    version = int.from_bytes(raw[:_VERSION_BYTES], "big", signed=True)
    try:
        data = DefaultPrincipalData.from_bytes(raw[_VERSION_BYTES:], version)
    except (ProtocolError, UnsupportedVersion):
        raise InvalidPrincipal("a forwarded principal that is not DefaultPrincipalData") from None
    if not (data.type and data.name):
        raise InvalidPrincipal("a forwarded principal without type or name")
    return Principal(data.type, data.name), data.token_authenticated
