"""Files that a process may still open, when its peers have taken all others.

Connections, and answers that are being sent, hold descriptors for as long as their peers like. What the logs
themselves have to open is mostly closed again at once: an index, a checkpoint, a folder that is synced. So a
few descriptors are kept for it. Whoever reads for a peer stays away while some of them are in use.

To lack descriptors is no fault of a disk: nothing was lost, and it passes.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

SPARE: Final = 64
PATIENCE_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.1

T = TypeVar("T")


def is_lack_of_descriptors(error: OSError) -> bool:
    return error.errno in (errno.EMFILE, errno.ENFILE)


def wait_for_descriptors(work: Callable[[], None]) -> None:
    """For a thread: what can be done again from its beginning, and has to be done."""
    for _ in range(int(PATIENCE_SECONDS / _PAUSE_SECONDS)):
        try:
            return work()
        except OSError as error:
            if not is_lack_of_descriptors(error):
                raise
            threading.Event().wait(_PAUSE_SECONDS)
    return work()


class Reserve:
    """Descriptors that are open for nothing. None until `keep` is called: they belong to a whole process."""

    __slots__ = ("_kept", "_lock", "_spare")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = 0
        self._spare: list[int] = []

    def keep(self, count: int) -> None:
        """From now on, so many: fewer while some are in use, or while there are not so many."""
        with self._lock:
            self._kept = count
            while len(self._spare) > count:
                os.close(self._spare.pop())
        self._fill()

    def is_in_use(self) -> bool:
        """Still: what was let go meanwhile is kept again first. Readers that stay away open nothing, which
        would do it too, and would wait for ever."""
        if len(self._spare) < self._kept:
            self._fill()
        return len(self._spare) < self._kept

    def use(self, opening: Callable[[], T]) -> T:
        """What `opening` gives, with one of these if there are no others."""
        while True:
            try:
                opened = opening()
            except OSError as error:
                if not is_lack_of_descriptors(error) or not self._give():
                    raise
                continue  # another thread, or a peer that connects, may have been faster
            if len(self._spare) < self._kept:
                self._fill()
            return opened

    def _give(self) -> bool:
        with self._lock:
            if not self._spare:
                return False
            os.close(self._spare.pop())
            return True

    def _fill(self) -> None:
        with self._lock:
            try:
                while len(self._spare) < self._kept:
                    self._spare.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                pass  # with the next file that is opened


RESERVE: Final = Reserve()
