"""The files of a log and of its copy, compared byte by byte.

A leader epoch is the epoch of a leader of its own cluster. It lies outside a batch's checksum and is the only
thing in which the two may differ. So it is written over with zeros, on both sides, and then all bytes count.
Where segments begin is each broker's own affair: they are compared as one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD

_EPOCH = slice(12, 16)


def without_epochs(directory: Path) -> bytes:
    """All batches of a partition's directory."""
    segments = sorted(directory.glob("*.log"))
    joined = bytearray(b"".join(segment.read_bytes() for segment in segments))
    at = 0
    while len(joined) - at >= HEADER_SIZE:
        size = int.from_bytes(joined[at + 8 : at + 12], "big") + LOG_OVERHEAD
        if size < HEADER_SIZE:
            break  # what Apache Kafka has preallocated
        joined[at + _EPOCH.start : at + _EPOCH.stop] = bytes(4)
        at += size
    return bytes(joined[:at])


def digest(directory: Path, size: int = -1) -> tuple[int, str]:
    """How many bytes, and their checksum; of the first `size` bytes if that is given."""
    content = without_epochs(directory)
    if size >= 0:
        content = content[:size]
    return len(content), hashlib.sha256(content).hexdigest()
