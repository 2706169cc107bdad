"""Reads Kafka's primitive types and trusts nothing.

Every count and length is compared with the bytes that remain before anything is made from it, so a few
bytes can never ask for many. Whatever is wrong raises ProtocolError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct, unpack_from
from typing import Any, Final, NoReturn
from uuid import UUID

from headrace.core.ports import Buffer
from headrace.protocol.limits import MAX_BODY_TAGS, MAX_ELEMENTS, MAX_STRING, ProtocolError

_NULL: Final = -1
_INT8: Final = Struct(">b")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_UINT16: Final = Struct(">H")
_UINT32: Final = Struct(">I")
_FLOAT64: Final = Struct(">d")


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """A UUID is slow to make in Python, and the same few topic ids come again and again."""
    return UUID(bytes=raw)


class Reader:
    """Reads primitives from `buf[at:end]`, moving `at` forward."""

    __slots__ = ("at", "buf", "elements", "end")

    def __init__(
        self, buf: Buffer, at: int = 0, end: int | None = None, *, max_elements: int = MAX_ELEMENTS
    ) -> None:
        self.buf = memoryview(buf)
        self.at = at
        self.end = len(self.buf) if end is None else end
        self.elements = max_elements
        """How many array elements may still be read."""

    @property
    def remaining(self) -> int:
        return self.end - self.at

    def finish(self) -> None:
        """Demand that everything was read."""
        if self.at != self.end:
            raise ProtocolError(f"{self.end - self.at} bytes follow the end of the message")

    def _short(self, wanted: int) -> NoReturn:
        raise ProtocolError(f"{wanted} bytes wanted, {self.end - self.at} remain")

    # --- fixed size ---------------------------------------------------------------------------------

    def fixed(self, layout: Struct) -> tuple[Any, ...]:
        """A run of fixed-size fields at once."""
        at = self.at
        after = at + layout.size
        if after > self.end:
            self._short(layout.size)
        self.at = after
        return layout.unpack_from(self.buf, at)

    def int8(self) -> int:
        at = self.at
        if at + 1 > self.end:
            self._short(1)
        self.at = at + 1
        value: int = _INT8.unpack_from(self.buf, at)[0]
        return value

    def int16(self) -> int:
        at = self.at
        if at + 2 > self.end:
            self._short(2)
        self.at = at + 2
        value: int = _INT16.unpack_from(self.buf, at)[0]
        return value

    def int32(self) -> int:
        at = self.at
        if at + 4 > self.end:
            self._short(4)
        self.at = at + 4
        value: int = _INT32.unpack_from(self.buf, at)[0]
        return value

    def int64(self) -> int:
        at = self.at
        if at + 8 > self.end:
            self._short(8)
        self.at = at + 8
        value: int = _INT64.unpack_from(self.buf, at)[0]
        return value

    def uint16(self) -> int:
        at = self.at
        if at + 2 > self.end:
            self._short(2)
        self.at = at + 2
        value: int = _UINT16.unpack_from(self.buf, at)[0]
        return value

    def uint32(self) -> int:
        at = self.at
        if at + 4 > self.end:
            self._short(4)
        self.at = at + 4
        value: int = _UINT32.unpack_from(self.buf, at)[0]
        return value

    def float64(self) -> float:
        value: float = self.fixed(_FLOAT64)[0]
        return value

    def boolean(self) -> bool:
        return self.int8() != 0

    def uuid(self) -> UUID:
        return uuid_of(self.take(16).tobytes())

    # --- varints ------------------------------------------------------------------------------------

    def unsigned_varint(self) -> int:
        at = self.at
        if at < self.end:
            first = self.buf[at]
            if first < 0x80:
                self.at = at + 1
                return first
        return self._unsigned(5, 32)

    def varint(self) -> int:
        raw = self.unsigned_varint()
        return (raw >> 1) ^ -(raw & 1)

    def varlong(self) -> int:
        raw = self._unsigned(10, 64)
        return (raw >> 1) ^ -(raw & 1)

    def _unsigned(self, most_bytes: int, bits: int) -> int:
        buf, at, end = self.buf, self.at, self.end
        value = shift = 0
        for _ in range(most_bytes):
            if at >= end:
                raise ProtocolError("a varint is cut off")
            byte = buf[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise ProtocolError("a varint is longer than its value needs")
                if value >> bits:
                    raise ProtocolError(f"a varint does not fit in {bits} bits")
                self.at = at
                return value
            shift += 7
        raise ProtocolError(f"a varint is longer than {most_bytes} bytes")

    # --- strings and bytes --------------------------------------------------------------------------

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, not copied."""
        at = self.at
        after = at + size
        if size < 0 or after > self.end:
            self._short(size)
        self.at = after
        return self.buf[at:after]

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; where they begin."""
        at = self.at
        after = at + size
        if size < 0 or after > self.end:
            self._short(size)
        self.at = after
        return at

    def _text(self, size: int) -> str:
        if size < 0:
            raise ProtocolError("null, or a negative length, where a string must be")
        if size > MAX_STRING:
            raise ProtocolError(f"a string of {size} bytes is longer than {MAX_STRING}")
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a string is not UTF-8: {error.reason}") from error

    def string(self) -> str:
        return self._text(self.int16())

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size == _NULL else self._text(size)

    def compact_string(self) -> str:
        return self._text(self.unsigned_varint() - 1)

    def compact_nullable_string(self) -> str | None:
        size = self.unsigned_varint() - 1
        return None if size == _NULL else self._text(size)

    def bytes_(self) -> bytes:
        return self.take(self.int32()).tobytes()

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size == _NULL else self.take(size).tobytes()

    def compact_bytes(self) -> bytes:
        return self.take(self.unsigned_varint() - 1).tobytes()

    def compact_nullable_bytes(self) -> bytes | None:
        size = self.unsigned_varint() - 1
        return None if size == _NULL else self.take(size).tobytes()

    def records(self) -> memoryview:
        return self.take(self.int32())

    def nullable_records(self) -> memoryview | None:
        size = self.int32()
        return None if size == _NULL else self.take(size)

    def compact_records(self) -> memoryview:
        return self.take(self.unsigned_varint() - 1)

    def compact_nullable_records(self) -> memoryview | None:
        size = self.unsigned_varint() - 1
        return None if size == _NULL else self.take(size)

    # --- arrays -------------------------------------------------------------------------------------

    def _count(self, count: int, min_element_size: int) -> int:
        if count < 0:
            raise ProtocolError("null, or a negative count, where an array must be")
        if count * min_element_size > self.end - self.at:
            raise ProtocolError(f"{count} elements cannot be in the {self.end - self.at} bytes that remain")
        self.elements -= count
        if self.elements < 0:
            raise ProtocolError("too many array elements in one message")
        return count

    def array_length(self, min_element_size: int) -> int:
        return self._count(self.int32(), min_element_size)

    def nullable_array_length(self, min_element_size: int) -> int:
        count = self.int32()
        return count if count == _NULL else self._count(count, min_element_size)

    def compact_array_length(self, min_element_size: int) -> int:
        return self._count(self.unsigned_varint() - 1, min_element_size)

    def compact_nullable_array_length(self, min_element_size: int) -> int:
        count = self.unsigned_varint() - 1
        return count if count == _NULL else self._count(count, min_element_size)

    def numbers(self, count: int, code: str, size: int) -> list[int]:
        """`count` integers of `size` bytes each, of the struct module's `code`."""
        at = self.at
        if count * size > self.end - at:
            self._short(count * size)
        self.at = at + count * size
        return list(unpack_from(f">{count}{code}", self.buf, at))

    # --- tagged fields ------------------------------------------------------------------------------

    def tags(self, most: int = MAX_BODY_TAGS) -> Iterable[int]:
        """Each tag in turn; `end` is the end of its field while the caller reads or skips it."""
        count = self.unsigned_varint()
        return self._each_tag(self._tag_count(count, most)) if count else ()

    def skip_tags(self, most: int = MAX_BODY_TAGS) -> None:
        """Pass over all tagged fields, making nothing of them."""
        count = self.unsigned_varint()
        if count:
            for _ in range(self._tag_count(count, most)):
                self.unsigned_varint()
                self.skip(self.unsigned_varint())

    def skip_tag(self) -> None:
        """Pass over the one field that `tags` stands at."""
        self.at = self.end

    def _tag_count(self, count: int, most: int) -> int:
        if count > most:
            raise ProtocolError(f"{count} tagged fields, of which at most {most} are allowed")
        if count * 2 > self.end - self.at:
            raise ProtocolError(f"{count} tagged fields cannot be in what remains")
        return count

    def _each_tag(self, count: int) -> Iterator[int]:
        outer = self.end
        for _ in range(count):
            tag = self.unsigned_varint()
            size = self.unsigned_varint()
            if size > outer - self.at:
                self._short(size)
            self.end = self.at + size
            yield tag
            if self.at != self.end:
                raise ProtocolError(f"tagged field {tag} is longer than its content")
            self.end = outer
