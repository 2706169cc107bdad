"""Writes Kafka's primitive types. What cannot be written is our own mistake: a ValueError."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack
from typing import Final, TypeVar
from uuid import UUID

from headrace.core.ports import Buffer
from headrace.protocol.limits import MAX_STRING

T = TypeVar("T")

_INT8: Final = Struct(">b")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_UINT16: Final = Struct(">H")
_UINT32: Final = Struct(">I")
_FLOAT64: Final = Struct(">d")


def required(value: T | None) -> T:
    """`value`, where the version that is being written has no way to say null."""
    if value is None:
        raise ValueError("null in a field that cannot be null in this version")
    return value


class Writer:
    """Appends primitives to `buf`."""

    __slots__ = ("buf",)

    def __init__(self) -> None:
        self.buf = bytearray()

    def getvalue(self) -> bytes:
        return bytes(self.buf)

    def fixed(self, layout: Struct, *values: object) -> None:
        """A run of fixed-size fields at once."""
        self.buf += layout.pack(*values)

    def int8(self, value: int) -> None:
        self.buf += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self.buf += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self.buf += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.buf += _INT64.pack(value)

    def uint16(self, value: int) -> None:
        self.buf += _UINT16.pack(value)

    def uint32(self, value: int) -> None:
        self.buf += _UINT32.pack(value)

    def float64(self, value: float) -> None:
        self.buf += _FLOAT64.pack(value)

    def boolean(self, value: bool) -> None:
        self.buf.append(1 if value else 0)

    def uuid(self, value: UUID) -> None:
        self.buf += value.bytes

    def unsigned_varint(self, value: int) -> None:
        if 0 <= value < 0x80:
            self.buf.append(value)
        elif value >> 32:
            raise ValueError(f"{value} does not fit in an unsigned varint")
        else:
            self._unsigned(value)

    def varint(self, value: int) -> None:
        if not -(1 << 31) <= value < 1 << 31:
            raise ValueError(f"{value} does not fit in a varint")
        self._unsigned((value << 1) ^ (value >> 31))

    def varlong(self, value: int) -> None:
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError(f"{value} does not fit in a varlong")
        self._unsigned((value << 1) ^ (value >> 63))

    def _unsigned(self, value: int) -> None:
        buf = self.buf
        while value > 0x7F:
            buf.append((value & 0x7F) | 0x80)
            value >>= 7
        buf.append(value)

    def string(self, value: str) -> None:
        raw = _encoded(value)
        self.buf += _INT16.pack(len(raw))
        self.buf += raw

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self.buf += b"\xff\xff"
        else:
            self.string(value)

    def compact_string(self, value: str) -> None:
        raw = _encoded(value)
        self.unsigned_varint(len(raw) + 1)
        self.buf += raw

    def compact_nullable_string(self, value: str | None) -> None:
        if value is None:
            self.buf.append(0)
        else:
            self.compact_string(value)

    def bytes_(self, value: Buffer) -> None:
        self.buf += _INT32.pack(len(value))
        self.buf += value

    def nullable_bytes(self, value: Buffer | None) -> None:
        if value is None:
            self.buf += b"\xff\xff\xff\xff"
        else:
            self.bytes_(value)

    def compact_bytes(self, value: Buffer) -> None:
        self.unsigned_varint(len(value) + 1)
        self.buf += value

    def compact_nullable_bytes(self, value: Buffer | None) -> None:
        if value is None:
            self.buf.append(0)
        else:
            self.compact_bytes(value)

    # Records differ from bytes only in how they are read: without a copy. Methods, not other names for the
    # same functions: a compiled class cannot have those.

    def records(self, value: Buffer) -> None:
        self.bytes_(value)

    def nullable_records(self, value: Buffer | None) -> None:
        self.nullable_bytes(value)

    def compact_records(self, value: Buffer) -> None:
        self.compact_bytes(value)

    def compact_nullable_records(self, value: Buffer | None) -> None:
        self.compact_nullable_bytes(value)

    def array_length(self, count: int) -> None:
        self.buf += _INT32.pack(count)

    def compact_array_length(self, count: int) -> None:
        self.unsigned_varint(count + 1)

    def numbers(self, values: Sequence[int], code: str) -> None:
        self.buf += pack(f">{len(values)}{code}", *values)

    def tags(self, fields: Sequence[tuple[int, Writer]]) -> None:
        """Tagged fields, in ascending order of tag."""
        self.unsigned_varint(len(fields))
        for tag, content in fields:
            self.unsigned_varint(tag)
            self.unsigned_varint(len(content.buf))
            self.buf += content.buf

    def no_tags(self) -> None:
        self.buf.append(0)


def _encoded(value: str) -> bytes:
    raw = value.encode()
    if len(raw) > MAX_STRING:
        raise ValueError(f"a string of {len(raw)} bytes is longer than {MAX_STRING}")
    return raw
