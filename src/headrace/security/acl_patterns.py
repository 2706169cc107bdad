"""Values by resource pattern, found by the name of a resource: the literal, every prefix of it, the wildcard.

A look-up probes once per *length* of the prefixes, so its cost does not grow with the number of patterns.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from headrace.security.acl import WILDCARD, PatternType

V = TypeVar("V")


class PatternTable(Generic[V]):
    __slots__ = ("_prefixes_of_length", "lengths", "literal", "prefixed", "wild")

    def __init__(self) -> None:
        self.literal: dict[str, V] = {}
        """Without the wildcard."""
        self.prefixed: dict[str, V] = {}
        self.lengths: list[int] = []
        """The lengths of the keys of `prefixed`, each once, ascending."""
        self.wild: V | None = None
        self._prefixes_of_length: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self.literal) or bool(self.prefixed) or self.wild is not None

    def __iter__(self) -> Iterator[tuple[PatternType, str, V]]:
        if self.wild is not None:
            yield PatternType.LITERAL, WILDCARD, self.wild
        for name, value in self.prefixed.items():
            yield PatternType.PREFIXED, name, value
        for name, value in self.literal.items():
            yield PatternType.LITERAL, name, value

    def get(self, pattern: PatternType, name: str) -> V | None:
        if pattern == PatternType.PREFIXED:
            return self.prefixed.get(name)
        return self.wild if name == WILDCARD else self.literal.get(name)

    def obtain(self, pattern: PatternType, name: str, make: Callable[[], V]) -> V:
        """The pattern's value, made if there is none."""
        found = self.get(pattern, name)
        if found is not None:
            return found
        made = make()
        if pattern == PatternType.PREFIXED:
            self.prefixed[name] = made
            self._count_length(len(name))
        elif name == WILDCARD:
            self.wild = made
        else:
            self.literal[name] = made
        return made

    def discard(self, pattern: PatternType, name: str) -> None:
        if pattern == PatternType.PREFIXED:
            if self.prefixed.pop(name, None) is not None:
                self._uncount_length(len(name))
        elif name == WILDCARD:
            self.wild = None
        else:
            self.literal.pop(name, None)

    def covering(self, name: str) -> list[V]:
        """The values of all patterns that a resource of this name falls under."""
        found = self.covering_prefix(name)
        literal = self.literal.get(name)
        if literal is not None:
            found.append(literal)
        return found

    def covering_prefix(self, prefix: str) -> list[V]:
        """The values of all patterns that *every* name with this prefix falls under."""
        found = [] if self.wild is None else [self.wild]
        size, prefixed = len(prefix), self.prefixed
        for length in self.lengths:
            if length > size:
                break
            value = prefixed.get(prefix[:length])
            if value is not None:
                found.append(value)
        return found

    def covering_pattern(self, pattern: PatternType, name: str) -> list[V]:
        """The values of all patterns that every resource of this pattern falls under."""
        if pattern == PatternType.PREFIXED:
            return self.covering_prefix(name)
        if name == WILDCARD:
            return [] if self.wild is None else [self.wild]
        return self.covering(name)

    def _count_length(self, length: int) -> None:
        count = self._prefixes_of_length.get(length, 0)
        self._prefixes_of_length[length] = count + 1
        if count == 0:
            insort(self.lengths, length)

    def _uncount_length(self, length: int) -> None:
        self._prefixes_of_length[length] -= 1
        if self._prefixes_of_length[length] == 0:
            del self._prefixes_of_length[length]
            self.lengths.remove(length)
