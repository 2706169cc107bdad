"""Telling a disk that has no room from one that is broken."""

from __future__ import annotations

import errno
from typing import Final

from headrace.core.ports import SyncFailed

FULL: Final = (errno.ENOSPC, errno.EDQUOT)


def is_full_disk(error: OSError) -> bool:
    """Not of a sync: what was written before it may be gone."""
    return error.errno in FULL and not isinstance(error, SyncFailed)
