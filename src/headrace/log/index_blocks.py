"""Blocks of index files that stay in memory: for all logs of a broker together, with a limit in bytes.

An index is looked into by the event loop only where its blocks are here. Whoever may wait for a disk, a
thread, brings them. The block that was not asked for longest goes first.
"""

from __future__ import annotations

from typing import Final

MAX_BYTES: Final = 32 * 1024 * 1024
"""8,000 blocks of 4 KB, each of which leads to 2 MB of a log."""
_ENTRY_BYTES: Final = 200
"""What the table takes for a block besides the block."""

Key = tuple[object, int, int]
"""Whose block it is, which state of that file, and which block."""


class IndexBlocks:
    """Loop and threads may use it together: each step is one operation of a dictionary."""

    __slots__ = ("_blocks", "held_bytes", "max_bytes")

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._blocks: dict[Key, bytes] = {}
        self.max_bytes = max_bytes
        self.held_bytes = 0

    def get(self, key: Key) -> bytes | None:
        block = self._blocks.pop(key, None)
        if block is not None:
            self._blocks[key] = block
        return block

    def put(self, key: Key, block: bytes) -> None:
        old = self._blocks.pop(key, None)
        if old is not None:
            self.held_bytes -= len(old) + _ENTRY_BYTES
        self._blocks[key] = block
        self.held_bytes += len(block) + _ENTRY_BYTES
        while self.held_bytes > self.max_bytes:
            oldest = next(iter(self._blocks), None)
            if oldest is None:
                return
            gone = self._blocks.pop(oldest, None)
            if gone is not None:
                self.held_bytes -= len(gone) + _ENTRY_BYTES
