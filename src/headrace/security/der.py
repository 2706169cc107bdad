"""As much of DER (X.690) as a certificate's subject needs: one element after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from headrace.core.errors import ClientError

OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31

_LONG_LENGTH: Final = 0x80
_LONG_TAG: Final = 0x1F
_MOST_LENGTH_BYTES: Final = 3
_MOST_ARC_BYTES: Final = 19
"""Enough for 128 bits, the largest numbers that are given out (as UUIDs)."""


class InvalidDer(ClientError):
    """Bytes that are not DER, or hold something else than what must stand there."""


class Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes
    """With its tag and length."""


def elements(data: bytes) -> Iterator[Element]:
    """What stands in `data`, without a rest. Raises InvalidDer."""
    at = 0
    while at < len(data):
        tag, start, size = _header(data, at)
        end = start + size
        if end > len(data):
            raise InvalidDer("an element is longer than what holds it")
        yield Element(tag, data[start:end], data[at:end])
        at = end


def only(data: bytes, tag: int) -> bytes:
    """The content of the one element that `data` is. Raises InvalidDer."""
    found = list(elements(data))
    if len(found) != 1 or found[0].tag != tag:
        raise InvalidDer(f"one element with tag {tag:#x} must stand here, and nothing else")
    return found[0].content


def object_identifier(content: bytes) -> str:
    """Dotted numbers. Raises InvalidDer."""
    arcs: list[int] = []
    value = size = 0
    for byte in content:
        if size == 0 and byte == _LONG_LENGTH:
            raise InvalidDer("a number of an object identifier begins with zeros")
        value, size = value << 7 | byte & 0x7F, size + 1
        if size > _MOST_ARC_BYTES:
            raise InvalidDer("a number of an object identifier is too large")
        if byte < _LONG_LENGTH:
            arcs.append(value)
            value = size = 0
    if not arcs or size:
        raise InvalidDer("an object identifier is cut off")
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _header(data: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the element at `at`, where its content starts, and its length."""
    if at + 2 > len(data) or data[at] & _LONG_TAG == _LONG_TAG:
        raise InvalidDer("an element is cut off, or has a tag of several bytes")
    tag, length = data[at], data[at + 1]
    if length < _LONG_LENGTH:
        return tag, at + 2, length
    count = length - _LONG_LENGTH
    start = at + 2 + count
    if not 0 < count <= _MOST_LENGTH_BYTES or start > len(data):
        raise InvalidDer("a length is cut off, too large or not definite")
    size = int.from_bytes(data[at + 2 : start], "big")
    if size < _LONG_LENGTH or data[at + 2] == 0:
        raise InvalidDer("a length takes more bytes than it needs")
    return tag, start, size
