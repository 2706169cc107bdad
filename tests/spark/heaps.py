"""What a JVM has in its memory. A secret that it was ever given is there until something overwrites it."""

from __future__ import annotations

import mmap
import subprocess
from collections.abc import Iterable
from pathlib import Path

_SECONDS = 120


def held_in_memory(pid: int, texts: Iterable[str], dump: Path) -> set[str]:
    """Those of the texts that are there, garbage included. Java keeps text that is ASCII as bytes."""
    subprocess.run(
        ["jcmd", str(pid), "GC.heap_dump", "-all", str(dump)],
        check=True,
        capture_output=True,
        timeout=_SECONDS,
    )
    try:
        with dump.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            return {text for text in texts if memory.find(text.encode()) >= 0}
    finally:
        dump.unlink()
