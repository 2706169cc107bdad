"""A checksum of 128 bits over a set of rows, whatever their order: by it a lost set is known again.

Each value is cut into words of 64 bits, each word is scrambled, and the sum of the words, each times a weight
of its position, is the value's hash; twice, with other weights. A row's hash mixes those of its columns so
that no two rows can exchange a part unseen. The checksum is the sum over the rows, in two halves.

It is made to tell accidents apart, not forgeries.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.spark.sink.encoding import Columns, lengths_of
from headrace.spark.sink.partitioning import by_length, padded

Lanes = npt.NDArray[np.uint64]
"""Two numbers for each row."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_ABSENT: Final = np.uint64(0xD6E8FEB86659FD93)
_WORDS_AT_ONCE: Final = 16 * 1024
"""What the processor's cache holds beside the rest."""
_MASK: Final = (1 << 64) - 1


class Checksum(NamedTuple):
    """Of a set of rows; the checksum of two sets together is the sum of theirs."""

    rows: int = 0
    high: int = 0
    low: int = 0

    def __add__(self, other: object) -> Checksum:
        if not isinstance(other, Checksum):
            return NotImplemented
        return Checksum(
            self.rows + other.rows, (self.high + other.high) & _MASK, (self.low + other.low) & _MASK
        )

    @property
    def text(self) -> str:
        return f"{self.high:016x}{self.low:016x}"


def checksum(columns: Columns) -> Checksum:
    """Of keys, values and headers. Times are left out: a row that is written again may get a new one."""
    rows = len(columns.value)
    if not rows:
        return Checksum()
    total = np.zeros((rows, 2), np.uint64)
    for place, column in enumerate((columns.key, columns.value, columns.headers), start=1):
        lanes = np.full((rows, 2), _ABSENT) if column is None else _hashes(column)
        total = _mixed(total + lanes * np.uint64(2 * place + 1))
    high, low = total.sum(axis=0, dtype=np.uint64).tolist()
    return Checksum(rows, high, low)


def _hashes(column: Any) -> Lanes:
    lengths = lengths_of(column)
    if column.null_count:
        column = column.fill_null(b"")
    found = np.empty((len(column), 2), np.uint64)
    for width, rows in by_length(lengths, 8):
        some = column if len(rows) == len(column) else column.take(pa.array(rows))
        found[rows] = _sums(padded(some, width).view("<u8"))
    return _mixed(found + (lengths + 2).view(np.uint64)[:, None] * _MIX_2)


def _sums(words: npt.NDArray[np.uint64]) -> Lanes:
    """Weighted sums of each row. A word is spread over all its bits first: else only the lowest bits of a
    weight would tell its top bytes."""
    rows, width = words.shape
    weights = _weights(width)
    found = np.empty((rows, 2), np.uint64)
    step = max(1, _WORDS_AT_ONCE // width)
    spread = np.empty((min(step, rows), width), np.uint64)
    shifted = np.empty_like(spread)
    for at in range(0, rows, step):
        some = words[at : at + step]
        one, other = spread[: len(some)], shifted[: len(some)]
        np.multiply(some, _MIX_1, out=one)
        np.right_shift(one, np.uint64(32), out=other)
        np.bitwise_xor(one, other, out=one)
        np.matmul(one, weights, out=found[at : at + step])
    return found


_known_weights: Lanes = np.zeros((0, 2), np.uint64)
"""Computed once for the longest value seen."""


def _weights(count: int) -> Lanes:
    global _known_weights
    if len(_known_weights) < count:
        numbers = np.arange(1, 2 * count + 1, dtype=np.uint64).reshape(count, 2)
        _known_weights = _mixed(numbers * _ODD) | np.uint64(1)
    return _known_weights[:count]


def _mixed(numbers: Lanes) -> Lanes:
    mixed = (numbers ^ (numbers >> np.uint64(30))) * _MIX_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX_2
    return mixed ^ (mixed >> np.uint64(31))


def total(parts: list[Checksum]) -> Checksum:
    found = Checksum()
    for part in parts:
        found += part
    return found
