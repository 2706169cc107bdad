"""One reason why a new JSON Schema does not take all that an old one took."""

from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """The types are called as Confluent's registry calls them, where it has the same."""

    type: str
    path: str

    def __str__(self) -> str:
        return f"{self.type} at #{self.path or '/'}"
