"""Log directories that other users of the machine can look into.

What a broker makes is private. A directory that was there before, made by an operator or by an earlier
version, stays as it is: somebody may have given others access on purpose.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import Any, Final

_OTHERS: Final = 0o077


def open_to_others(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if _mode(path) & _OTHERS]


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return 0  # it is made soon, or it fails soon: both are told elsewhere


def warn_of_open_directories(log: Any, paths: Sequence[str]) -> None:
    found = open_to_others(paths)
    if found:
        log.warning(
            "log directories are open to other users of this machine",
            directories=found,
            cure=f"chmod -R go-rwx {shlex.join(found)}",
        )
