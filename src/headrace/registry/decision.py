"""What an operation decides: records to be written, and what to answer once they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from headrace.registry.records import Entry

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """Nothing has changed yet. Without records the answer holds at once."""

    records: list[Entry]
    answer: T
