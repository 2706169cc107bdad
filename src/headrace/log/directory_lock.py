"""One process per log directory: an exclusive lock on its `.lock` file, gone with the process."""

from __future__ import annotations

import errno
import fcntl

from headrace.core.errors import ConfigError
from headrace.core.ports import Disk, File


def lock_directory(disk: Disk, path: str) -> File | None:
    """Hold the lock for as long as the file is open. ConfigError if another process has it."""
    file = disk.open(path, create=True)
    try:
        descriptor = file.fileno()
    except OSError:
        return None  # a simulated disk has one user
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        raise ConfigError(
            f"{path} is locked: another broker uses this directory. Stop it, or correct log.dirs"
        ) from None
    return file
