"""Zig-zag varints of whole columns at once, and what stands between the bytes of keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def zigzag(numbers: Integers) -> npt.NDArray[np.uint64]:
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def varint_lengths(numbers: Integers) -> Integers:
    """How many bytes each number takes."""
    raw = zigzag(numbers)
    lengths = np.ones(len(raw), np.int64)
    limit = 7
    while limit < 64:
        longer = raw >= np.uint64(1 << limit)
        if not longer.any():
            break
        lengths += longer
        limit += 7
    return lengths


def packed(parts: Sequence[Integers | int]) -> Any:
    """A binary column. Each of its values is the `parts` of that row, one behind the other: a varint for a
    column of numbers, one byte for an int."""
    rows = next(len(part) for part in parts if not isinstance(part, int))
    widths = [
        1 if isinstance(part, int) else (int(varint_lengths(part).max()) if rows else 1) for part in parts
    ]
    matrix = np.empty((rows, sum(widths)), np.uint8)
    used = np.ones(matrix.shape, np.bool_)
    at = 0
    for part, width in zip(parts, widths, strict=True):
        if isinstance(part, int):
            matrix[:, at] = part
        else:
            _write_varints(matrix[:, at : at + width], used[:, at : at + width], part)
        at += width
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(used.sum(axis=1, dtype=np.int32), out=offsets[1:])
    flat = matrix[used]
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(flat)])


def _write_varints(matrix: Bytes, used: npt.NDArray[np.bool_], numbers: Integers) -> None:
    raw = zigzag(numbers)
    width = matrix.shape[1]
    for index in range(width):
        more = raw >> np.uint64(7)
        byte = (raw & np.uint64(0x7F)).astype(np.uint8)
        byte[more != 0] |= 0x80
        matrix[:, index] = byte
        if index + 1 < width:
            used[:, index + 1] = used[:, index] & (more != 0)
        raw = more
