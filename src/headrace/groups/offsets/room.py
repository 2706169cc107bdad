"""Whether there is room for offsets that nobody has committed before."""

from __future__ import annotations

from collections.abc import Callable

from headrace.core.memory import MemoryShare, unlimited


class OffsetRoom:
    """`measure` counts anew what all shards hold, as often as it likes: those that were dropped took their
    offsets with them."""

    __slots__ = ("_measure", "memory")

    def __init__(
        self, memory: MemoryShare | None = None, measure: Callable[[], object] | None = None
    ) -> None:
        self.memory = unlimited("committed offsets") if memory is None else memory
        self._measure = measure

    def is_full(self) -> bool:
        memory = self.memory
        if memory.used_bytes < memory.limit_bytes:
            return False
        if self._measure is not None:
            self._measure()
        return memory.used_bytes >= memory.limit_bytes

    def refused(self) -> None:
        self.memory.refusals += 1
