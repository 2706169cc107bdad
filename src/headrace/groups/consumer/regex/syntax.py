"""What a pattern is made of, once it is parsed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from headrace.groups.consumer.regex.characters import Characters


class Place(Enum):
    """Conditions on a place between two characters."""

    START = "start"
    END = "end"
    BOUNDARY = "boundary"
    """Of a word."""
    NO_BOUNDARY = "no boundary"


class OneOf(NamedTuple):
    """One character."""

    characters: Characters


class InTurn(NamedTuple):
    """One after the other; nothing at all if there are none."""

    parts: tuple[Node, ...]


class Either(NamedTuple):
    choices: tuple[Node, ...]


class Repeated(NamedTuple):
    part: Node
    least: int
    most: int | None
    """None: without an end."""


Node = OneOf | InTurn | Either | Repeated | Place
