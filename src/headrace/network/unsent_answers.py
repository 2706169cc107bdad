"""Answers that peers have asked for and do not take: counted together, and bounded.

A peer that does not read is not served further, so each holds little; ten thousand of them hold much. When
the share is overdrawn, those go who have taken nothing for the longest time. File ranges cost no memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from headrace.core.memory import MemoryShare

SPARED_BYTES: Final = 16 * 1024
"""Whoever holds no more is counted and left alone: most consumers of file ranges."""


class SlowReader(Protocol):
    def on_too_slow(self) -> None:
        """Its answers take memory that others need."""


class UnsentAnswers:
    __slots__ = ("_held", "_spared", "share")

    def __init__(self, share: MemoryShare) -> None:
        self.share = share
        self._held: OrderedDict[SlowReader, int] = OrderedDict()
        """Who has taken nothing for the longest time comes first."""
        self._spared: dict[SlowReader, int] = {}

    def note(self, reader: SlowReader, size: int) -> None:
        """This much of its answers is in memory now, because it has not taken them."""
        self.forget(reader)
        if size <= SPARED_BYTES:
            self._spared[reader] = size
        else:
            self._held[reader] = size
        self.share.take(size)
        # Not the only one: an answer may be larger than the share, and its peer reads perhaps.
        while self.share.is_overdrawn and len(self._held) > 1:
            slowest, held = self._held.popitem(last=False)
            self.share.give(held)
            self.share.refusals += 1
            slowest.on_too_slow()

    def forget(self, reader: SlowReader) -> None:
        size = self._held.pop(reader, 0) or self._spared.pop(reader, 0)
        self.share.give(size)
