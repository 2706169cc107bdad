"""Files that hold secrets, or that a broker reads while they are replaced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600
READABLE: Final = 0o644
PRIVATE_DIRECTORY: Final = 0o700


def write_file(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """All of it or nothing, and never readable by others in between."""
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_if_changed(path: Path, data: bytes, mode: int = PRIVATE) -> bool:
    """Whether there was anything to write."""
    if path.exists() and path.read_bytes() == data:
        return False
    write_file(path, data, mode)
    return True
