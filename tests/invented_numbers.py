"""The numbers of a Reader that invents them: each type by way of one method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from struct import Struct
from typing import Any


class InventedNumbers(ABC):
    """Does not inherit from Reader: that may be compiled, and then nothing interpreted can."""

    __slots__ = ()

    @abstractmethod
    def number(self, code: str) -> Any:
        """`code` is struct's letter for the type."""

    def fixed(self, layout: Struct) -> tuple[Any, ...]:
        return tuple(self.number(code) for code in layout.format[1:])

    def int8(self) -> int:
        return int(self.number("b"))

    def int16(self) -> int:
        return int(self.number("h"))

    def int32(self) -> int:
        return int(self.number("i"))

    def int64(self) -> int:
        return int(self.number("q"))

    def uint16(self) -> int:
        return int(self.number("H"))

    def uint32(self) -> int:
        return int(self.number("I"))

    def float64(self) -> float:
        return float(self.number("d"))

    def boolean(self) -> bool:
        return bool(self.number("?"))
