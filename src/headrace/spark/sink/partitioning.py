"""Which partition each row goes to: the one it names, or by its key as Java's producer does, or in turn."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.sink.encoding import lengths_of
from headrace.spark.sink.varints import Integers

_SEED: Final = np.uint32(0x9747B28C)
_MULTIPLIER: Final = np.uint32(0x5BD1E995)

Hashes = npt.NDArray[np.uint32]


def padded(column: Any, width: int) -> npt.NDArray[np.uint8]:
    """The values, none longer than `width` and none null, as the rows of a matrix that ends with zeros."""
    as_text = column.view(pa.string())
    filled = pc.ascii_rpad(as_text, width=width, padding="\0")
    matrix: npt.NDArray[np.uint8] = np.frombuffer(
        filled.buffers()[2], np.uint8, len(filled) * width, _first_offset(filled)
    ).reshape(-1, width)
    return matrix


def _first_offset(column: Any) -> int:
    return int(np.frombuffer(column.buffers()[1], np.int32, 1, column.offset * 4)[0])


def by_length(lengths: Integers, unit: int) -> list[tuple[int, Integers]]:
    """(width, rows): rows whose values fit the width, which is `unit` times a power of two."""
    units = np.maximum(1, -(-lengths // unit))
    classes = np.ceil(np.log2(units)).astype(np.int64)
    return [(unit << int(each), np.flatnonzero(classes == each)) for each in np.unique(classes)]


def murmur2(keys: Any) -> Hashes:
    """Kafka's hash of each key. A null counts as empty: the caller knows which are."""
    keys = keys.fill_null(b"") if keys.null_count else keys
    lengths = lengths_of(keys)
    hashes = np.empty(len(keys), np.uint32)
    for width, rows in by_length(lengths, 8):
        some = keys if len(rows) == len(keys) else keys.take(pa.array(rows))
        hashes[rows] = _murmur2(padded(some, width), lengths[rows])
    return hashes


def _murmur2(matrix: npt.NDArray[np.uint8], lengths: Integers) -> Hashes:
    words = matrix.view("<u4")
    digest = _SEED ^ lengths.astype(np.uint32)
    whole = lengths >> 2
    for index in range(int(whole.max(initial=0))):
        word = words[:, index] * _MULTIPLIER
        word = (word ^ (word >> np.uint32(24))) * _MULTIPLIER
        digest = np.where(index < whole, (digest * _MULTIPLIER) ^ word, digest)
    rest = lengths & 3
    tails = np.take_along_axis(words, np.minimum(whole, words.shape[1] - 1)[:, None], axis=1)[:, 0]
    digest = np.where(rest > 0, (digest ^ tails) * _MULTIPLIER, digest)
    digest = (digest ^ (digest >> np.uint32(13))) * _MULTIPLIER
    return digest ^ (digest >> np.uint32(15))


class Turns:
    """Where rows without a key go: to one partition until a batch is full, then to the next."""

    def __init__(self, start: int, batch_bytes: int) -> None:
        self._next = start
        self._batch_bytes = batch_bytes

    def choose(self, sizes: Integers, partitions: int) -> Integers:
        """For rows of these sizes, in order."""
        batches = np.cumsum(sizes) // self._batch_bytes
        chosen: Integers = (self._next + batches) % partitions
        if len(batches):
            self._next = (self._next + int(batches[-1]) + 1) % partitions
        return chosen


def choose(keys: Any | None, sizes: Integers, partitions: int, turns: Turns) -> Integers:
    """A partition for each row that names none."""
    if keys is None or keys.null_count == len(keys):
        return turns.choose(sizes, partitions)
    chosen = (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions
    if keys.null_count:
        bare = pc.is_null(keys).to_numpy(zero_copy_only=False)
        chosen[bare] = turns.choose(sizes[bare], partitions)
    return chosen
