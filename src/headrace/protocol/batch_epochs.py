"""The leader epochs of batches, which lie outside their checksums."""

from __future__ import annotations

from struct import Struct
from typing import Final

from headrace.protocol.batch import HEADER_SIZE, LOG_OVERHEAD

_LENGTH: Final = Struct(">i")
_EPOCH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_EPOCH_AT: Final = 12


def adopt_epoch(batches: memoryview, epoch: int) -> int:
    """Write `epoch` into all whole batches, in place. How many bytes these are: what follows is cut off."""
    at, size = 0, len(batches)
    length_at, epoch_into = _LENGTH.unpack_from, _EPOCH.pack_into
    while size - at >= HEADER_SIZE:
        length = length_at(batches, at + _LENGTH_AT)[0] + LOG_OVERHEAD
        if length < HEADER_SIZE:
            break  # the log refuses it
        if length > size - at:
            return at
        epoch_into(batches, at + _EPOCH_AT, epoch)
        at += length
    return at if size - at < HEADER_SIZE else size


def last_epoch(batches: memoryview) -> int:
    """Of the last whole batch; -1 if there is none."""
    at, size, epoch = 0, len(batches), -1
    while size - at >= HEADER_SIZE:
        length = _LENGTH.unpack_from(batches, at + _LENGTH_AT)[0] + LOG_OVERHEAD
        if not HEADER_SIZE <= length <= size - at:
            break
        epoch = _EPOCH.unpack_from(batches, at + _EPOCH_AT)[0]
        at += length
    return epoch
