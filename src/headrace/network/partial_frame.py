"""A frame that arrives in pieces: its bytes so far, and the memory that it may fill."""

from __future__ import annotations

import socket
from array import array
from contextlib import suppress
from fcntl import ioctl
from struct import Struct
from termios import FIONREAD
from typing import Final

from headrace.core.errors import InvalidRequest
from headrace.network.buffers import BufferPool
from headrace.network.request_memory import ALLOWANCE_BYTES, BEGINNING_BYTES, Claim, Holder, RequestMemory

_LENGTH: Final = Struct(">i")
LENGTH_SIZE: Final = 4
_TLS_RECORD: Final = 0x1603
"""How a handshake begins, and no length that is allowed."""


def checked_size(data: bytearray | memoryview, max_frame_bytes: int) -> int:
    """Of the frame that begins here, length field included, if such a frame is allowed."""
    length: int = _LENGTH.unpack_from(data)[0]
    if not 0 < length <= max_frame_bytes:
        if length >> 16 == _TLS_RECORD:
            raise InvalidRequest(
                "the peer speaks TLS and this listener does not: set its security.protocol to PLAINTEXT or"
                " SASL_PLAINTEXT, or give it the port of a listener with TLS"
            )
        raise InvalidRequest(
            f"frame length {length} is not between 1 and {max_frame_bytes} (socket.request.max.bytes)"
        )
    return length + LENGTH_SIZE


def readable_bytes(descriptor: int) -> int:
    """What the kernel holds of it, ready to be read."""
    found = array("i", [0])
    with suppress(OSError):
        ioctl(descriptor, FIONREAD, found)
    return found[0]


class PartialFrame:
    """Invariant: what `buffer` may hold is paid for, by `_kept` bytes of beginnings or by a granted claim."""

    __slots__ = ("_claim", "_kept", "_memory", "_pool", "buffer", "filled", "frame_bytes")

    def __init__(self, memory: RequestMemory, pool: BufferPool) -> None:
        self._memory = memory
        self._pool = pool
        self._claim: Claim | None = None
        self._kept = 0
        self.buffer = bytearray(LENGTH_SIZE)
        self.filled = 0
        self.frame_bytes = 0
        """Length field included; 0 while even that is incomplete."""

    @property
    def is_whole(self) -> bool:
        return self.filled == self.frame_bytes

    @property
    def is_waiting(self) -> bool:
        return self._claim is not None and not self._claim.is_granted

    @property
    def needs_memory(self) -> bool:
        """The buffer is full and the frame is not: somebody has to make room before the next read."""
        return self.filled == len(self.buffer)

    def begin(self, frame_bytes: int, beginning: memoryview | None = None) -> None:
        """The length is known. Keep what has arrived, with some room for more."""
        had = memoryview(self.buffer)[: self.filled] if beginning is None else beginning
        count = len(had)
        size = min(frame_bytes, max(BEGINNING_BYTES, count))
        self.frame_bytes = frame_bytes
        self.filled = count
        self._keep(bytearray(size))
        self.buffer[:count] = had

    def begin_read(self, frame_bytes: int, beginning: memoryview, holder: Holder, *, is_link: bool) -> None:
        """The length is known, and this much was read with it. If that is all that may be kept without a
        reservation, and there is one, it is copied only once."""
        if len(beginning) >= BEGINNING_BYTES:
            self._claim = self._memory.claim(holder, frame_bytes, is_link=is_link)
        if self._claim is None or not self._claim.is_granted:
            self.begin(frame_bytes, beginning)
            return
        self.frame_bytes = frame_bytes
        self.filled = count = len(beginning)
        buffer = self._pool.take(frame_bytes)
        if len(buffer) <= count:
            buffer = bytearray(min(frame_bytes, 2 * count))
        buffer[:count] = beginning
        self.buffer = buffer

    def begin_length(self, beginning: memoryview) -> None:
        """Not even the length is known."""
        self.filled = len(beginning)
        self.buffer[: self.filled] = beginning

    def begin_unread(self, frame_bytes: int) -> None:
        """The length is known, and nothing has been read: memory comes first, unless the frame is tiny."""
        self.frame_bytes = frame_bytes
        self.buffer = bytearray()
        if frame_bytes <= ALLOWANCE_BYTES:
            self._keep(bytearray(frame_bytes))

    def _keep(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self._kept = len(buffer)
        self._memory.keep(self._kept)

    def receive(self, sock: socket.socket) -> int:
        """One recv, of this frame only."""
        view = memoryview(self.buffer)
        count = sock.recv_into(view[self.filled : self.frame_bytes or LENGTH_SIZE])
        view.release()
        self.filled += count
        return count

    def make_room(self, holder: Holder, *, is_link: bool) -> bool:
        """A larger buffer, if all of the frame is reserved by now. False: `holder` will be told."""
        if self._claim is None:
            self._claim = self._memory.claim(holder, self.frame_bytes, is_link=is_link)
        if not self._claim.is_granted:
            return False
        if self.buffer:
            self.buffer = self._pool.grow(self.buffer, self.filled, self.frame_bytes)
        else:
            self.buffer = self._pool.take(self.frame_bytes)
        self._drop_kept()
        return True

    def _drop_kept(self) -> None:
        if self._kept:
            self._memory.drop(self._kept)
            self._kept = 0

    def release(self) -> None:
        """It is served, or nobody wants it any more. Whoever waits for memory may get it now."""
        self._drop_kept()
        buffer, self.buffer = self.buffer, bytearray()
        self._pool.give(buffer)
        claim, self._claim = self._claim, None
        if claim is not None:
            self._memory.release(claim)
