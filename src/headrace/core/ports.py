"""The outside world, as the rest of the code may see it.

Each port has a real implementation and a simulated one in `headrace.testing`; both pass the same
behaviour suite. Nothing below the broker's composition root makes its own clock, disk or randomness.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the epoch: for timestamps in records, never for safety."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for timeouts and rates."""
        ...


class Random(Protocol):
    def randrange(self, start: int, /) -> int:
        """At least 0 and below `start`."""
        ...

    def randbytes(self, n: int) -> bytes: ...


class SyncFailed(OSError):
    """A sync that failed. Whatever its number says, what was written before may be gone: systems report
    there, with ENOSPC among others, what they could not write, and give up its pages."""

    @classmethod
    def of(cls, error: OSError) -> SyncFailed:
        return cls(error.errno, error.strerror, error.filename)


class File(Protocol):
    """One open file. Every call is positioned: a file has no cursor to share."""

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def pread_resident(self, length: int, position: int) -> bytes | None:
        """As many bytes as were asked for, if they are in memory: None where `pread` would wait for a disk
        or give fewer."""
        ...

    def pread_passing(self, length: int, position: int) -> bytes:
        """As `pread`, for whoever does not come back: what was brought from a disk leaves memory again."""
        ...

    def is_resident(self, position: int, length: int) -> bool:
        """Whether the whole range is in memory: to send it waits for no disk. Asking reads nothing."""
        ...

    def pwrite(self, data: Buffer, position: int) -> None:
        """Write all of `data` or raise OSError."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """fdatasync. After it returns, the content survives a power loss. SyncFailed if it cannot be."""
        ...

    def close(self) -> None: ...

    def fileno(self) -> int:
        """The descriptor, for sendfile. A simulated file has none and raises OSError."""
        ...


class FileRange(NamedTuple):
    """Bytes of a file that are sent as they are, without passing through this process."""

    file: File
    position: int
    length: int


class Disk(Protocol):
    """A file system. Paths are plain strings. Errors are OSError, as the system gives them."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list(self, path: str) -> Sequence[str]:
        """Names in a directory, sorted."""
        ...

    def make_dirs(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Atomic, replaces `new`. Durable once the directory is synced."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None:
        """Makes creations, renames and removals inside `path` durable. SyncFailed if it cannot be."""
        ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...
