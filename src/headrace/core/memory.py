"""What one kind of state may take of the memory that a broker spends on its peers. Pure counting."""

from __future__ import annotations


class MemoryShare:
    """A limit, and what is used of it. Whoever keeps the state says what it costs."""

    __slots__ = ("kind", "limit_bytes", "refusals", "used_bytes")

    def __init__(self, kind: str, limit_bytes: int) -> None:
        self.kind = kind
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.refusals = 0
        """How often a peer was refused, or lost what it had, because the share was full."""

    def has_room(self, size: int) -> bool:
        return self.used_bytes + size <= self.limit_bytes

    def take(self, size: int) -> None:
        """Also above the limit: some state is there whether there is room for it or not, as what is replayed
        from a log is. Ask `has_room` first where it can be refused."""
        self.used_bytes += size

    def give(self, size: int) -> None:
        self.used_bytes -= size

    @property
    def is_overdrawn(self) -> bool:
        return self.used_bytes > self.limit_bytes


def unlimited(kind: str) -> MemoryShare:
    return MemoryShare(kind, 2**63 - 1)
