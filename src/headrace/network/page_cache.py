"""The cold-read rule: a range that is not in the page cache is read ahead by a thread, never by the loop.

`sendfile` on a cold range would block the event loop for a disk read, and with it every producer of the
broker. `preadv` with RWF_NOWAIT tells whether a page is there without waiting for it.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from headrace.core.errors import CorruptLog
from headrace.core.ports import FileRange

INLINE_BYTES: Final = 16 * 1024
"""Up to here one copy and one `send` cost less than announcing, probing and `sendfile`."""
READ_AHEAD_BYTES: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 256 * 1024
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)


class PageCache:
    __slots__ = ("_loop", "_probe", "_threads", "cold_reads", "on_damage", "verify")

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: ThreadPoolExecutor) -> None:
        self._loop = loop
        self._threads = threads
        self._probe = bytearray(1)
        self.cold_reads = 0
        self.verify: Callable[[FileRange], None] | None = None
        """Checks a range that came from the disk, in the thread that brought it; raises if it is bad."""
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
        """Whether both ends of the range are cached; what lies between was read with them."""
        try:
            descriptor = part.file.fileno()
            last = part.position + part.length - 1
            os.preadv(descriptor, [self._probe], last, _NOWAIT)
            os.preadv(descriptor, [self._probe], part.position, _NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # no such probe on this file system: sendfile will report real errors
        return True

    def warm(self, part: FileRange, then: Callable[[], None]) -> None:
        """Read the range in a thread, then call `then` on the loop."""
        self.cold_reads += 1
        future = self._loop.run_in_executor(self._threads, self._bring, part)

        def on_done(done: asyncio.Future[None]) -> None:
            error = done.exception()
            is_lost = isinstance(error, OSError) and error.errno == errno.EIO
            if (is_lost or isinstance(error, CorruptLog)) and self.on_damage is not None:
                self.on_damage(part)
            # Any other is not a failure yet: sendfile will meet it too and report it. What is damaged is
            # sent all the same: whoever reads it finds out by its checksum, and the replica goes.
            then()

        future.add_done_callback(on_done)

    def _bring(self, part: FileRange) -> None:
        _read_ahead(part)
        if self.verify is not None:
            self.verify(part)


def _read_ahead(part: FileRange) -> None:
    descriptor = part.file.fileno()
    position, end = part.position, part.position + part.length
    os.posix_fadvise(descriptor, position, part.length + READ_AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
    scratch = bytearray(min(_CHUNK_BYTES, part.length))
    while position < end:
        count = os.preadv(descriptor, [scratch], position)
        if count <= 0:
            return
        position += count
