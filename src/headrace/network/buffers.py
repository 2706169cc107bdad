"""Receive buffers: one shared by all connections for small reads, and a few large ones that are reused.

A frame that arrives whole is served in place from the shared buffer. Only a frame that arrives in pieces
gets a buffer of its own, which grows with what has really arrived: a length field alone allocates nothing.
"""

from __future__ import annotations

from typing import Final

SHARED_BYTES: Final = 256 * 1024
FIRST_BYTES: Final = 1024 * 1024
"""A frame whose memory is reserved gets at most this much of a reused buffer before its bytes are there."""
NEW_BYTES: Final = 64 * 1024
"""And at most this much of new memory."""
POOLED_BYTES: Final = 2 * 1024 * 1024
POOL_SIZE: Final = 8


class BufferPool:
    __slots__ = ("_free", "shared", "shared_view")

    def __init__(self) -> None:
        self.shared = bytearray(SHARED_BYTES)
        self.shared_view = memoryview(self.shared)
        self._free: list[bytearray] = []

    def take(self, frame_bytes: int) -> bytearray:
        """A buffer for the beginning of a frame of `frame_bytes`; may be shorter than the frame."""
        wanted = min(frame_bytes, FIRST_BYTES)
        for index, buffer in enumerate(self._free):
            if len(buffer) >= wanted:
                del self._free[index]
                return buffer
        return bytearray(min(wanted, NEW_BYTES))

    def grow(self, buffer: bytearray, filled: int, frame_bytes: int) -> bytearray:
        """A larger buffer that begins with the `filled` bytes of the old one."""
        larger = self.take(frame_bytes)
        if len(larger) <= len(buffer):
            larger = bytearray(min(frame_bytes, 2 * len(buffer)))
        larger[:filled] = memoryview(buffer)[:filled]
        return larger

    def give(self, buffer: bytearray) -> None:
        # Not those that hold a beginning: they would take the places of large ones, which are dear to make.
        if NEW_BYTES < len(buffer) <= POOLED_BYTES and len(self._free) < POOL_SIZE:
            self._free.append(buffer)
