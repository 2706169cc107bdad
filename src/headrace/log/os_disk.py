"""The disk port over the operating system's own files.

Only the user of the process can read what is made here, whatever the umask is: the metadata holds
credentials, and records are nobody else's business.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Sequence
from typing import Final

from headrace.core.ports import Buffer, SyncFailed
from headrace.log import residency
from headrace.log.descriptors import RESERVE

PRIVATE_FILE: Final = 0o600
PRIVATE_DIRECTORY: Final = 0o700


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that is made by it has the mode of all others."""
    return os.open(path, flags, PRIVATE_FILE)


def make_private_directories(path: str) -> None:
    """`os.makedirs` gives its mode to the last directory alone, and leaves those above to the umask."""
    try:
        os.mkdir(path, PRIVATE_DIRECTORY)
    except FileNotFoundError:
        above = os.path.dirname(path.rstrip("/"))
        if not above or os.path.isdir(above):
            raise
        make_private_directories(above)
        make_private_directories(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def descriptor_limit() -> int:
    """How many files this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class OsFile:
    """One descriptor. It is closed by `close`, or when the last reference goes.

    A fetch that is still being sent keeps a reference to the file, so a segment may be dropped at any time:
    the descriptor's number cannot be given to another file before the last byte has left.
    """

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def pread(self, length: int, position: int) -> bytes:
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        have = len(data)
        while have < length:
            data = os.pread(self._descriptor, length - have, position + have)
            if not data:
                break
            parts.append(data)
            have += len(data)
        return b"".join(parts)

    def pread_resident(self, length: int, position: int) -> bytes | None:
        return residency.pread_resident(self._descriptor, length, position)

    def pread_passing(self, length: int, position: int) -> bytes:
        return residency.pread_passing(self._descriptor, length, position)

    def is_resident(self, position: int, length: int) -> bool:
        return residency.is_resident(self._descriptor, position, length)

    def pwrite(self, data: Buffer, position: int) -> None:
        written = os.pwrite(self._descriptor, data, position)
        if written == len(data):
            return
        with memoryview(data) as view:
            while written < len(view):
                with view[written:] as rest:
                    written += os.pwrite(self._descriptor, rest, position + written)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise SyncFailed.of(error) from error

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


class OsDisk:
    """Paths are given to the system as they are; every error is its OSError, that of a sync a SyncFailed."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OsFile(RESERVE.use(lambda: os.open(path, flags, PRIVATE_FILE)))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> Sequence[str]:
        return sorted(RESERVE.use(lambda: os.listdir(path)))

    def make_dirs(self, path: str) -> None:
        make_private_directories(path)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        """Of a link only the link: what it leads to is not ours to remove."""
        if os.path.islink(path):
            os.remove(path)
        else:
            RESERVE.use(lambda: shutil.rmtree(path))

    def sync_dir(self, path: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        descriptor = RESERVE.use(lambda: os.open(path, flags))
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise SyncFailed.of(error) from error
        finally:
            os.close(descriptor)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def free_bytes(self, path: str) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def total_bytes(self, path: str) -> int:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize


class ReadOnlyOsDisk(OsDisk):
    """For files that nobody may change: a backup, or a file system that is mounted so. A pipe in the place of
    a file is not waited for."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:  # noqa: ARG002 - nothing is created
        return OsFile(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
