"""Disks that fill up or become read-only, and a way to be subject to permissions. Needs root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, Self

#: Root without these is asked for permissions like anybody else. Nobody else needs them taken away.
OBEYS_PERMISSIONS: Final = (
    ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner") if os.geteuid() == 0 else ()
)


class SmallDisk:
    """A file system in memory, of a few megabytes, that can be filled to the last byte. Needs root."""

    def __init__(self, path: Path, megabytes: int) -> None:
        self.path = path
        self._megabytes = megabytes

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True, exist_ok=True)
        options = f"size={self._megabytes}m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.path)], check=True)
        return self

    def fill(self, leave: int = 0) -> None:
        """To the last byte, or all but some."""
        zeros = bytes(1 << 20)
        with (self.path / "filler").open("ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(zeros[:size]):
                        pass
            file.truncate(max(file.tell() - leave, 0))

    def free(self) -> None:
        (self.path / "filler").unlink(missing_ok=True)

    def make_read_only(self) -> bool:
        """Whether it could be done: the kernel refuses while a file is open for writing."""
        return self._remount("ro")

    def make_writable(self) -> None:
        self._remount("rw")

    def _remount(self, mode: str) -> bool:
        command = ["mount", "-o", f"remount,{mode}", str(self.path)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Lazily: a process that is being ended may still hold a file.
        subprocess.run(["umount", "-l", str(self.path)], check=False)
