"""Messages made at random, without a second description of their schemas.

A generated `decode` calls the Reader once for each field, with the field's type as the method's name. A
Reader that invents an answer, guided by bytes that Hypothesis draws, therefore makes a message that is
valid in that version, and a shrunk run of bytes makes a shrunk message.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, cast
from uuid import UUID

from headrace.protocol import messages, stored
from headrace.protocol.message import Message
from headrace.protocol.primitives import MAX_BODY_TAGS, Reader
from tests.invented_numbers import InventedNumbers

_BITS = {"b": 8, "h": 16, "i": 32, "q": 64, "H": 16, "I": 32}
_HIGHEST_TAG = 16
_STRINGS = ("", "a", "topic-1", "größer", "x" * 130, "\U0001f600" * 3)


@cache
def all_messages() -> tuple[type[Message], ...]:
    found = []
    for package in (messages, stored):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for each in vars(import_module(module.name)).values():
                if isinstance(each, type) and issubclass(each, Message) and each.__module__ == module.name:
                    found.append(each)
    return tuple(found)


def versions(message: type[Message]) -> range:
    return range(message.MIN_VERSION, message.MAX_VERSION + 1)


class DrawnReader(InventedNumbers):
    """Answers from `source`, and with zeros, empties and nulls when that has run out.

    Has every method of a Reader that a generated `decode` calls.
    """

    __slots__ = ("modest", "source")

    def __init__(self, source: bytes, *, modest: bool = False) -> None:
        self.source: Iterator[int] = iter(source)
        self.modest = modest
        """Only small numbers, which every other codec takes for times, error codes and ports as well."""

    def byte(self) -> int:
        return next(self.source, 0)

    def number(self, code: str) -> Any:
        choice = self.byte()
        if code == "?":
            return choice % 2 == 1
        if code == "d":
            return choice / 8
        if self.modest:
            return choice % 64
        bits, signed = _BITS[code], code not in "HI"
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        if choice < 192:
            return min(choice % 96, high)
        if choice < 208:
            return (low, high, -1 if signed else 1, 0)[choice % 4]
        return low + int.from_bytes(bytes(self.byte() for _ in range(8))) % (high - low + 1)

    def unsigned_varint(self) -> int:
        return self.byte() % 2  # asked for only to say whether a tagged structure is there

    def uuid(self) -> UUID:
        return UUID(int=self.byte() * 0x0101_0101_0101_0101_0101)

    def string(self) -> str:
        return _STRINGS[self.byte() % len(_STRINGS)]

    def nullable_string(self) -> str | None:
        choice = self.byte()
        return None if choice == 0 else _STRINGS[choice % len(_STRINGS)]

    compact_string = string
    compact_nullable_string = nullable_string

    def bytes_(self) -> bytes:
        return bytes(range(self.byte()))

    def nullable_bytes(self) -> bytes | None:
        return self.bytes_() or None

    compact_bytes = bytes_
    compact_nullable_bytes = nullable_bytes

    def records(self) -> memoryview:
        return memoryview(self.bytes_())

    def nullable_records(self) -> memoryview | None:
        return memoryview(self.bytes_()) if self.byte() % 4 else None

    compact_records = records
    compact_nullable_records = nullable_records

    def array_length(self, min_element_size: int) -> int:
        choice = self.byte()
        return choice % 3 if choice < 250 else choice - 120

    def nullable_array_length(self, min_element_size: int) -> int:
        return self.array_length(min_element_size) if self.byte() % 4 else -1

    compact_array_length = array_length
    compact_nullable_array_length = nullable_array_length

    def numbers(self, count: int, code: str, size: int) -> list[int]:
        return [self.number(code) for _ in range(count)]

    def tags(self, most: int = MAX_BODY_TAGS) -> Iterable[int]:
        chosen = self.byte() | self.byte() << 8
        return [tag for tag in range(_HIGHEST_TAG) if chosen >> tag & 1]

    def skip_tags(self, most: int = MAX_BODY_TAGS) -> None:
        pass

    def skip_tag(self) -> None:
        pass


def draw(message: type[Message], version: int, source: bytes, *, modest: bool = False) -> Message:
    return message.decode(cast("Reader", DrawnReader(source, modest=modest)), version)
