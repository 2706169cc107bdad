"""A file without bytes: what an answer without records points at, so that it needs no descriptor."""

from __future__ import annotations

import errno
from typing import Final

from headrace.core.ports import Buffer


class EmptyFile:
    __slots__ = ()

    def pread(self, length: int, position: int) -> bytes:  # noqa: ARG002 - the port's signature
        return b""

    def pread_resident(self, length: int, position: int) -> bytes | None:  # noqa: ARG002 - as above
        return None

    def pread_passing(self, length: int, position: int) -> bytes:  # noqa: ARG002 - as above
        return b""

    def is_resident(self, position: int, length: int) -> bool:  # noqa: ARG002 - as above
        return True

    def pwrite(self, data: Buffer, position: int) -> None:  # noqa: ARG002 - the port's signature
        raise OSError(errno.EBADF, "the empty file takes no bytes")

    def size(self) -> int:
        return 0

    def truncate(self, size: int) -> None:
        if size:
            raise OSError(errno.EBADF, "the empty file takes no bytes")

    def sync(self) -> None:
        """Nothing to sync."""

    def close(self) -> None:
        """Nothing to close."""

    def fileno(self) -> int:
        raise OSError(errno.EBADF, "the empty file has no descriptor")


EMPTY_FILE: Final = EmptyFile()
