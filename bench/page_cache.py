"""Which file pages are in memory, and how to put them out: the ground for a cold read."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]


def evict(directory: Path) -> None:
    """Write every file below the directory back to the disk and drop its pages."""
    for path in _files(directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)  # a dirty page cannot be dropped
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def resident_fraction(directory: Path) -> float:
    """The part of the files' pages that is in the page cache.

    mincore looks without touching; a read that only probes (RWF_NOWAIT) may start a read-ahead.
    """
    pages = present = 0
    for path in _files(directory):
        size = path.stat().st_size
        if size == 0:
            continue
        with path.open("rb") as file:
            mapping = mmap.mmap(
                file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
            )
        count = -(-size // mmap.PAGESIZE)
        states = ctypes.create_string_buffer(count)
        window = ctypes.c_char.from_buffer(mapping)
        try:
            if _libc.mincore(ctypes.addressof(window), size, states):
                raise OSError(ctypes.get_errno(), "mincore", str(path))
        finally:
            del window
            mapping.close()
        pages += count
        present += sum(state & 1 for state in states.raw)
    return present / pages if pages else 0.0


def _files(directory: Path) -> list[Path]:
    return [path for path in sorted(directory.rglob("*.log")) if path.is_file()]
