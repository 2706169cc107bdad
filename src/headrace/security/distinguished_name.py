"""The subject of a certificate as Java's `X500Principal.getName()` writes it (RFC 2253): ACLs hold that text.

Read from the DER itself, and not by a library: Java writes what it does not know as the hex of the *encoded*
value, which a parsed name no longer has.

Different subjects must not become one principal. So two kinds are refused that Java writes with loss: bytes
that are no UTF-8 (Java puts U+FFFD for all of them), and a BMPString beyond ASCII (Java reads its bytes as
UTF-8: one CJK character becomes two letters).
"""

from __future__ import annotations

from typing import Final

from headrace.core.errors import ClientError
from headrace.security.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    Element,
    InvalidDer,
    elements,
    object_identifier,
    only,
)

MAX_SUBJECT_BYTES: Final = 4096
"""A name that is rendered into more than 1 KiB is refused later anyway."""

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
_TEXT_TAGS: Final = frozenset({_UTF8, _PRINTABLE, _T61, _IA5, _GENERAL, _BMP})
"""Values of other types are written as hex."""
_SPECIAL: Final = frozenset(',=+<>#;"\\')
_EDGES: Final = " \r"
"""Escaped at either end only. Java takes a carriage return there for a space."""
_FIELDS_BEFORE_SUBJECT: Final = 4
_VERSION_TAG: Final = 0xA0


class UnreadableName(ClientError):
    """A subject that cannot be told apart from others in text, or is none at all. Its certificate is not
    accepted."""


def rendered(subject: bytes) -> str:
    """The last RDN first. Raises UnreadableName."""
    if len(subject) > MAX_SUBJECT_BYTES:
        raise UnreadableName(f"the subject of the certificate has more than {MAX_SUBJECT_BYTES} bytes")
    try:
        return ",".join(reversed([_rdn(each) for each in elements(only(subject, SEQUENCE))]))
    except InvalidDer as error:
        raise UnreadableName(f"the subject of the certificate is malformed: {error}") from None


def subject_of(certificate: bytes) -> bytes:
    """The subject's DER in that of a certificate. Raises UnreadableName."""
    try:
        signed = next(elements(only(certificate, SEQUENCE)), None)
        fields = [] if signed is None or signed.tag != SEQUENCE else list(elements(signed.content))
    except InvalidDer as error:
        raise UnreadableName(f"the certificate is malformed: {error}") from None
    # Serial number, algorithm, issuer and validity; a version before them in all but the oldest.
    at = _FIELDS_BEFORE_SUBJECT + bool(fields and fields[0].tag == _VERSION_TAG)
    if len(fields) <= at or fields[at].tag != SEQUENCE:
        raise UnreadableName("the certificate has no subject")
    return fields[at].whole


def _rdn(element: Element) -> str:
    """One attribute and its value, or several, in the order in which they are encoded."""
    parts = [_attribute(each) for each in elements(element.content)]
    if element.tag != SET or not parts:
        raise InvalidDer("an RDN is not a set of attributes")
    return "+".join(parts)


def _attribute(element: Element) -> str:
    parts = list(elements(element.content))
    if element.tag != SEQUENCE or len(parts) != 2 or parts[0].tag != OBJECT_IDENTIFIER:
        raise InvalidDer("an attribute is not a type and a value")
    number, value = object_identifier(parts[0].content), parts[1]
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(_text(value))}"


def _text(value: Element) -> str:
    if value.tag == _BMP and (any(value.content[::2]) or not value.content.isascii()):
        raise UnreadableName("the subject of the certificate has a BMPString beyond ASCII: use UTF8String")
    try:
        return value.content.decode()
    except UnicodeDecodeError:
        raise UnreadableName(
            "the subject of the certificate has a text that is not UTF-8: use UTF8String"
        ) from None


def _escaped(text: str) -> str:
    first = len(text) - len(text.lstrip(_EDGES))
    last = len(text.rstrip(_EDGES))
    return "".join(
        f"\\{char}" if char in _SPECIAL or not first <= at < last else "\\00" if char == "\0" else char
        for at, char in enumerate(text)
    )
