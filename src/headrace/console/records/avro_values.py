"""Avro records as what JSON can say. Strangers write them, and the schemas too: a few bytes can claim to be
millions of values, or be nested without end. So values are counted, and depth is bounded."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from headrace.console.records.avro_schemas import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    Unreadable,
)
from headrace.console.records.texts import DEEPEST, escaped

MOST_VALUES: Final = 20_000
_LONGEST_DECIMAL: Final = 1000
"""Bytes: numbers with more digits take long to be written."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PER_SECOND: Final = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}


def read(node: Node, data: bytes) -> Any:
    """Raises Unreadable."""
    reader = _Reader(data)
    value = reader.value(node, 0)
    left = len(data) - reader.at
    if left:
        raise Unreadable(f"{left} of its bytes are left over")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._values = 0
        self.at = 0

    def value(self, node: Node, depth: int) -> Any:
        self._values += 1
        if self._values > MOST_VALUES:
            raise Unreadable(f"it has more than {MOST_VALUES:,} values")
        if depth > DEEPEST:
            raise Unreadable(f"it is nested more than {DEEPEST} levels deep")
        match node:
            case Primitive():
                return _shown(self._primitive(node.kind), node)
            case Record():
                return {name: self.value(each, depth + 1) for name, each in node.fields}
            case Union():
                return self.value(_chosen(node.branches, self._number()), depth + 1)
            case Array():
                found: list[Any] = []
                self._blocks(lambda: found.append(self.value(node.items, depth + 1)))
                return found
            case Map():
                entries: dict[str, Any] = {}
                self._blocks(lambda: entries.update({self._text(): self.value(node.values, depth + 1)}))
                return entries
            case Enum():
                return _chosen(node.symbols, self._number())
            case Fixed():
                return _shown(self._bytes(node.size), node)

    def _blocks(self, read_one: Callable[[], None]) -> None:
        """Each item is a value and counted, also one of no bytes."""
        while count := self._number():
            if count < 0:
                count = -count
                self._number()
            for _ in range(count):
                read_one()

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._bytes(1) != b"\0"
            case "int" | "long":
                return self._number()
            case "float":
                return struct.unpack("<f", self._bytes(4))[0]
            case "double":
                return struct.unpack("<d", self._bytes(8))[0]
            case "bytes":
                return self._bytes(self._number())
        return self._text()

    def _text(self) -> str:
        return self._bytes(self._number()).decode("utf-8", "backslashreplace")

    def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self.at:
            raise Unreadable("it ends within a value")
        self.at += count
        return self._data[self.at - count : self.at]

    def _number(self) -> int:
        found = shift = 0
        while True:
            (byte,) = self._bytes(1)
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
            shift += 7
            if shift > 63:
                raise Unreadable("it has a number of more than ten bytes")


def _chosen(choices: tuple[Any, ...], at: int) -> Any:
    if not 0 <= at < len(choices):
        raise Unreadable(f"it chooses number {at} of {len(choices)}")
    return choices[at]


def _shown(value: Any, node: Primitive | Fixed) -> Any:
    if node.logical == "decimal" and isinstance(value, bytes) and len(value) <= _LONGEST_DECIMAL:
        return _decimal(int.from_bytes(value, "big", signed=True), node.scale)
    if isinstance(value, bytes):
        return escaped(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    if isinstance(value, int) and node.logical:
        return _moment(value, node.logical)
    return value


def _decimal(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    point = len(digits) - scale
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:point]}.{digits[point:]}" if scale else f"{sign}{digits}"


def _moment(value: int, logical: str) -> Any:
    """As ISO 8601 has it; the bare number where no calendar has it."""
    kind, _, unit = logical.rpartition("-")
    try:
        if logical == "date":
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if unit not in _PER_SECOND or kind not in ("timestamp", "time"):
            return value
        whole, fraction = divmod(value, _PER_SECOND[unit])
        digits = str(fraction).rjust(len(str(_PER_SECOND[unit])) - 1, "0")
        moment = _EPOCH + timedelta(seconds=whole)
    except OverflowError:
        return value
    if kind == "timestamp":
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{digits}Z"
    return f"{moment:%H:%M:%S}.{digits}" if 0 <= whole < 86_400 else value
