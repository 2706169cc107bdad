"""What is committed: the smallest end offset among the in-sync replicas. Pure."""

from __future__ import annotations

from collections.abc import Iterable


class HighWatermark:
    """Invariant: it never moves back while its replica leads, and never passes the local end offset."""

    __slots__ = ("_ends", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._ends: dict[int, int] = {}
        """End offsets that in-sync followers reported in this epoch; a new epoch knows nothing of them."""

    def set_followers(self, in_sync: Iterable[int]) -> None:
        self._ends = {follower: self._ends.get(follower, -1) for follower in in_sync}

    def on_append(self, end_offset: int) -> bool:
        """The leader's own log reaches `end_offset`. True if more is committed now."""
        committed = end_offset
        for end in self._ends.values():
            committed = min(committed, end)
        if committed <= self.offset:
            return False
        self.offset = committed
        return True
