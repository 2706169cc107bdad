"""Requests that are valid and as full as one likes, of every API and version, without a list of their fields.

A generated `decode` asks its Reader for each field by type. This Reader answers with lists of a chosen length
and with names, numbers and bytes of a chosen kind, until the request has the size that it may have. So the
search over counts, duplicates and sizes reaches each field of each API, also of those that are added later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from headrace.protocol.message import Message
from headrace.protocol.primitives import MAX_BODY_TAGS, Reader
from tests.invented_numbers import InventedNumbers


class Stuffing(NamedTuple):
    """How a request is filled."""

    label: str
    counts: tuple[int, ...]
    """The length of a list, by how many are around it; the last one for all below."""
    names: str = "known"
    """known: topics that exist, in turn; one: always the same; other: names that do not exist, each once;
    long: the same, of 200 characters; pattern: a regular expression that is dear to compile."""
    number: int | None = None
    """For every number; None: 0, 1, 2 and so on."""
    flag: bool = False


_PATTERN: Final = "(a|b)*a(a|b){400}"


class StuffedReader(InventedNumbers):
    """Has every method of a Reader that a generated `decode` calls."""

    def __init__(self, stuffing: Stuffing, known: list[str], most_bytes: int) -> None:
        self._stuffing = stuffing
        self._known = known
        self._left = most_bytes
        self._next = 0
        self._open: list[int] = []

    def _take(self, size: int) -> None:
        self._left -= size

    def _turn(self) -> int:
        self._next += 1
        return self._next

    def number(self, code: str) -> Any:
        self._take(4)
        if code == "?":
            return self._stuffing.flag
        if code == "d":
            return 1.0
        value = self._turn() if self._stuffing.number is None else self._stuffing.number
        bits = {"b": 7, "h": 15, "i": 31, "q": 63, "H": 16, "I": 32}[code]
        return max(value, 0 if code in "HI" else value) % (1 << bits) if value >= 0 else value

    def unsigned_varint(self) -> int:
        return 1

    def uuid(self) -> UUID:
        self._take(16)
        return UUID(int=self._turn())

    def string(self) -> str:
        kind, turn = self._stuffing.names, self._turn()
        if kind == "known":
            found = self._known[turn % len(self._known)]
        elif kind == "one":
            found = self._known[0]
        elif kind == "pattern":
            found = _PATTERN
        elif kind == "long":
            found = f"n{turn}".ljust(200, "x")
        else:
            found = f"n{turn}"
        self._take(len(found) + 2)
        return found

    nullable_string = compact_string = compact_nullable_string = string

    def bytes_(self) -> bytes:
        self._take(40)
        return b"\0" * 32

    nullable_bytes = compact_bytes = compact_nullable_bytes = bytes_

    def records(self) -> memoryview:
        return memoryview(self.bytes_())

    nullable_records = compact_records = compact_nullable_records = records

    def array_length(self, min_element_size: int) -> int:
        """Deeper lists are asked for between the elements of this one: how deep is not told, so that the
        lengths take turns. No list is begun when the request is full."""
        if self._left <= 0:
            return 0
        counts = self._stuffing.counts
        count = counts[min(len(self._open), len(counts) - 1)]
        self._open.append(count)
        if len(self._open) > len(counts):
            self._open.pop()
        return min(count, max(1, self._left // max(min_element_size, 4)))

    nullable_array_length = compact_array_length = compact_nullable_array_length = array_length

    def numbers(self, count: int, code: str, size: int) -> list[int]:
        return [self.number(code) for _ in range(count)]

    def tags(self, most: int = MAX_BODY_TAGS) -> Iterable[int]:
        return ()

    def skip_tags(self, most: int = MAX_BODY_TAGS) -> None:
        pass

    def skip_tag(self) -> None:
        pass


def stuffed(
    request: type[Message], version: int, stuffing: Stuffing, known: list[str], most_bytes: int
) -> Message:
    reader = StuffedReader(stuffing, known, most_bytes)
    return request.decode(cast("Reader", reader), version)


def stuffings(most: int) -> Iterator[Stuffing]:
    """What is tried for each API. `most` is the longest list."""
    few = max(2, round(most**0.5))
    for names in ("known", "one", "other", "long", "pattern"):
        for label, counts in (("wide", (most, 1)), ("deep", (1, most)), ("both", (few, few))):
            for number in (None, 0, -1):
                yield Stuffing(f"{label}, names {names}, numbers {number}", counts, names, number)
    yield Stuffing("wide, flags set", (most, 1), "known", 0, flag=True)
    yield Stuffing("deep, flags set", (1, most), "other", None, flag=True)
