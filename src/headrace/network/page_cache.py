"""What is sent has to be in memory: `sendfile` of a cold range would make the event loop wait for a disk, and
with it every producer of the broker.

A fetch is answered with ranges that are in memory and verified (`broker/fetch/cold_reads.py`). Some have
left it again by the time that the socket takes them. Those are read once more by a thread, and verified:
what turns out to be damaged is not sent, though its length was promised. The connection ends, and the peer
asks again. The rest of their file comes back unverified, by the kernel's read-ahead: the log is told.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from headrace.core.errors import CorruptLog
from headrace.core.ports import FileRange

INLINE_BYTES: Final = 16 * 1024
"""Up to here one copy and one `send` cost less than announcing, probing and `sendfile`."""
_CHUNK_BYTES: Final = 256 * 1024
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)


class PageCache:
    __slots__ = ("_loop", "_threads", "cold_reads", "on_cold", "on_damage", "verify")

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: Executor | None) -> None:
        self._loop = loop
        self._threads = threads
        self.cold_reads = 0
        self.verify: Callable[[FileRange], None] | None = None
        """Checks a range that came from the disk, in the thread that brought it; raises if it is bad."""
        self.on_cold: Callable[[FileRange], None] | None = None
        """Told of a range that has left memory, before anything of its file is brought back."""
        self.on_damage: Callable[[FileRange], None] | None = None
        """Told of a range that is bad, or that the disk does not give."""

    def read_small(self, part: FileRange) -> bytearray | None:
        """The bytes of a small range if they are cached: the read that does not wait is its own probe."""
        data = bytearray(part.length)
        try:
            count = os.preadv(part.file.fileno(), [data], part.position, _NOWAIT)
        except OSError:
            return None
        return data if count == part.length else None

    def is_warm(self, part: FileRange) -> bool:
        """Whether every page of the range is in memory."""
        return part.file.is_resident(part.position, part.length)

    def warm(self, part: FileRange, then: Callable[[bool], None]) -> None:
        """Read the range in a thread, then call `then` on the loop: with False if it must not be sent."""
        self.cold_reads += 1
        if self.on_cold is not None:
            self.on_cold(part)
        future = self._loop.run_in_executor(self._threads, self._bring, part)

        def on_done(done: asyncio.Future[None]) -> None:
            error = done.exception()
            is_lost = isinstance(error, OSError) and error.errno == errno.EIO
            is_bad = is_lost or isinstance(error, CorruptLog)
            if is_bad and self.on_damage is not None:
                self.on_damage(part)
            then(not is_bad)  # any other error is not a failure yet: sendfile will meet it too

        future.add_done_callback(on_done)

    def _bring(self, part: FileRange) -> None:
        _read(part)
        if self.verify is not None:
            self.verify(part)


def _read(part: FileRange) -> None:
    position, end = part.position, part.position + part.length
    while position < end:
        count = len(part.file.pread(min(_CHUNK_BYTES, end - position), position))
        if not count:
            return
        position += count
