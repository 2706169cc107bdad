"""A library of our own between a process and its disk and clock: both can be broken while it runs."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("faults.c")
CACHE: Final = Path(__file__).resolve().parents[2] / ".cache"
_FORMAT: Final = struct.Struct("=qIIIII240s")


def unavailable() -> str | None:
    return None if shutil.which("gcc") else "the library that breaks disks and clocks needs gcc"


def library() -> Path:
    """Compiled once for each version of its source."""
    CACHE.mkdir(exist_ok=True)
    made = CACHE / "faults.so"
    with (CACHE / "faults.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.stat().st_mtime < SOURCE.stat().st_mtime:
            flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-ldl"]
            subprocess.run(["gcc", "-o", f"{made}.new", str(SOURCE), *flags], check=True, timeout=60)
            os.replace(f"{made}.new", made)
    return made


class Faults:
    """What befalls the processes that have `environment`: files below `directory`, and the wall clock.

    The parts of the disk and the clock are set apart from each other.
    """

    def __init__(self, directory: Path, control: Path) -> None:
        self._prefix = f"{directory}/".encode()
        self._control = control
        self._clock_us = 0
        self._disk = (0, 0, 0, 0, 0)
        control.write_bytes(bytes(_FORMAT.size))
        self.environment = {"LD_PRELOAD": str(library()), "HEADRACE_FAULTS": str(control)}

    def fail(self, *, writes: int = 0, syncs: int = 0, reads: int = 0) -> None:
        """With these numbers of errno."""
        self._disk = (writes, syncs, reads, 0, 0)
        self._apply()

    def break_disk(self) -> None:
        self.fail(writes=errno.EIO, syncs=errno.EIO, reads=errno.EIO)

    def slow_disk(self, seconds: float) -> None:
        """Each write and each sync takes so much longer."""
        self._disk = (0, 0, 0, int(seconds * 1e6), 0)
        self._apply()

    def slow_syncs(self, seconds: float) -> None:
        """Each sync does, and writes go to the page cache as fast as ever."""
        self._disk = (0, 0, 0, 0, int(seconds * 1e6))
        self._apply()

    def heal_disk(self) -> None:
        self.fail()

    def set_clock(self, offset_seconds: float) -> None:
        """So far from the true time. What measures by the monotonic clock does not notice."""
        self._clock_us = int(offset_seconds * 1e6)
        self._apply()

    def heal(self) -> None:
        self._clock_us = 0
        self.heal_disk()

    def _apply(self) -> None:
        # In place: the processes have mapped this very file.
        with self._control.open("r+b", buffering=0) as file:
            file.write(_FORMAT.pack(self._clock_us, *self._disk, self._prefix))
