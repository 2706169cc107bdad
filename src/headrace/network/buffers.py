"""Receive buffers: one shared by all connections for small reads, and a few large ones that are reused.

A frame that arrives whole is served in place from the shared buffer. Only a frame that arrives in pieces
gets a buffer of its own, which grows with what has really arrived: a length field alone allocates nothing.
"""

from __future__ import annotations

from typing import Final

SHARED_BYTES: Final = 256 * 1024
FIRST_BYTES: Final = 1024 * 1024
"""A partial frame gets at most this much of a reused buffer before its bytes have arrived."""
NEW_BYTES: Final = 64 * 1024
"""And at most this much of new memory: a thousand connections that promise much must not cost a gigabyte."""
POOLED_BYTES: Final = 2 * 1024 * 1024
POOL_SIZE: Final = 8


class BufferPool:
    __slots__ = ("_free", "in_use_bytes", "limit_bytes", "shared", "shared_view")

    def __init__(self, limit_bytes: int = -1) -> None:
        self.shared = bytearray(SHARED_BYTES)
        self.shared_view = memoryview(self.shared)
        self.in_use_bytes = 0
        """Bytes of all partial frames: what clients can make the broker hold."""
        self.limit_bytes = limit_bytes
        self._free: list[bytearray] = []

    @property
    def exhausted(self) -> bool:
        return 0 <= self.limit_bytes <= self.in_use_bytes

    def take(self, frame_bytes: int) -> bytearray:
        """A buffer for the beginning of a frame of `frame_bytes`; may be shorter than the frame."""
        wanted = min(frame_bytes, FIRST_BYTES)
        for index, buffer in enumerate(self._free):
            if len(buffer) >= wanted:
                del self._free[index]
                break
        else:
            buffer = bytearray(min(wanted, NEW_BYTES))
        self.in_use_bytes += len(buffer)
        return buffer

    def grow(self, buffer: bytearray, filled: int, frame_bytes: int) -> bytearray:
        """A larger buffer that begins with the `filled` bytes of the old one."""
        larger = bytearray(min(frame_bytes, 2 * len(buffer)))
        larger[:filled] = memoryview(buffer)[:filled]
        self.in_use_bytes += len(larger) - len(buffer)
        return larger

    def give(self, buffer: bytearray) -> None:
        self.in_use_bytes -= len(buffer)
        if FIRST_BYTES // 16 <= len(buffer) <= POOLED_BYTES and len(self._free) < POOL_SIZE:
            self._free.append(buffer)
