"""One schema, its successor, and the verdicts of Confluent's rules."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    type: str
    name: str
    old: str
    new: str
    backward: bool
    """A consumer with the new schema reads what was written with the old one."""
    forward: bool
    """A consumer with the old schema reads what is written with the new one."""

    @property
    def id(self) -> str:
        return f"{self.type.lower()}: {self.name}"
