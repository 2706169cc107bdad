"""`RecordColumns` where nothing is compiled, and numpy and Arrow are there: all records of a batch at once.

Only where each record begins is found one by one. What does not look right at first sight goes to the plain
class, which says what is wrong with it or takes it in: so both give the same columns, and refuse the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.arrow.columns import Bounds, Columns, RecordColumns, Wanted, _BinaryColumn, column_maker
from headrace.core.errors import InvalidRecord
from headrace.core.ports import Buffer
from headrace.protocol.batch import BatchHeader
from headrace.protocol.record_spans import MIN_RECORD_BYTES, read_bounds

_MOST_HEADERS: Final = 64
_VARINT_BYTES: Final = 5
_FEW: Final = 8
"""So few records are taken one by one sooner."""

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def vector_maker() -> Callable[[Wanted, Bounds], Columns]:
    """The compiled class where the installed wheel has it, else this one."""
    made = column_maker()
    return VectorColumns if made is RecordColumns else made


class _Field(NamedTuple):
    """Where the bytes begin, and how many they are; -1 for null."""

    starts: Integers
    lengths: Integers

    def of(self, rows: npt.NDArray[np.bool_]) -> _Field:
        return _Field(self.starts[rows], self.lengths[rows])


class _Fields(NamedTuple):
    offsets: Integers
    times: Integers
    keys: _Field
    values: _Field
    header_counts: Integers
    names: _Field
    header_values: _Field


class _Unlike(Exception):
    """Not as batches are that vectors are made for."""


class VectorColumns(RecordColumns):
    def add(self, header: BatchHeader, body: Buffer) -> None:
        content = bytes(body)
        try:
            found = _fields(header, content)
        except (_Unlike, IndexError, InvalidRecord):
            super().add(header, content)
            return
        self._put(header, content, self._within(found))

    def _within(self, found: _Fields) -> _Fields:
        first_offset, next_offset, first_ms, next_ms = self._bounds
        offsets, times = found.offsets, found.times
        kept = (offsets >= first_offset) & (offsets < next_offset) & (times >= first_ms) & (times < next_ms)
        if kept.all():
            return found
        entries = np.repeat(kept, found.header_counts)
        return _Fields(
            offsets[kept],
            times[kept],
            found.keys.of(kept),
            found.values.of(kept),
            found.header_counts[kept],
            found.names.of(entries),
            found.header_values.of(entries),
        )

    def _put(self, header: BatchHeader, content: bytes, found: _Fields) -> None:
        rows = len(found.offsets)
        if not rows:
            return
        self._offsets.frombytes(found.offsets.tobytes())
        self._timestamps.frombytes(found.times.tobytes())
        self._types.extend([int(header.is_log_append_time)] * rows)
        if self._wanted.keys:
            _append(self._keys, content, found.keys)
        if self._wanted.values:
            _append(self._values, content, found.values)
        if self._wanted.headers:
            ends = self._header_ends[-1] + np.cumsum(found.header_counts)
            self._header_ends.frombytes(ends.astype(np.int32).tobytes())
            _append(self._header_names, content, found.names)
            _append(self._header_values, content, found.header_values)


def _append(column: _BinaryColumn, content: bytes, field: _Field) -> None:
    starts, lengths = field
    valid = lengths >= 0
    filled = np.maximum(lengths, 0)
    ends = len(column.data) + np.cumsum(filled)
    column.ends.frombytes(ends.astype(np.int32).tobytes())
    if filled.any():
        column.data += _slices(content, starts, starts + filled)
    column.valid += valid.tobytes()


def _slices(content: bytes, starts: Integers, stops: Integers) -> Buffer:
    """One behind the other. They lie in order, so they are every other value of a column over the batch."""
    rows = len(starts)
    edges = np.stack((starts, stops), axis=1).astype(np.int32)
    between = [None, pa.py_buffer(edges), pa.py_buffer(content)]
    every_other = [None, pa.py_buffer(np.arange(rows, dtype=np.int32) * 2)]
    column = pa.Array.from_buffers(pa.binary(), 2 * rows - 1, between)
    found: Buffer = column.take(pa.Array.from_buffers(pa.int32(), rows, every_other)).buffers()[2]
    return found


def _fields(header: BatchHeader, content: bytes) -> _Fields:
    count = header.record_count
    if count < _FEW or count * MIN_RECORD_BYTES > len(content):
        raise _Unlike
    bounds = read_bounds(content, count)
    if bounds[-1] != len(content):
        raise _Unlike
    data = np.frombuffer(content, np.uint8)
    edges = np.array(bounds, np.int64)
    ends = edges[1:]
    lengths, at = _varints(data, edges[:-1])
    _insist(at + lengths == ends)
    time_deltas, at = _varints(data, at + 1)
    deltas, at = _varints(data, at)
    _insist(np.diff(deltas, prepend=-1) > 0)
    _insist(deltas[-1:] <= header.last_offset_delta)
    keys, at = _field(data, at, ends)
    values, at = _field(data, at, ends)
    counts, at = _varints(data, at)
    names, header_values, at = _headers(data, at, counts, ends)
    _insist(at == ends)
    offsets = header.base_offset + deltas
    if header.is_log_append_time:
        times = np.full(count, header.max_timestamp, np.int64)
    else:
        times = header.base_timestamp + time_deltas
    return _Fields(offsets, times, keys, values, counts, names, header_values)


def _insist(is_so: npt.NDArray[np.bool_]) -> None:
    if not is_so.all():
        raise _Unlike


def _varints(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """The numbers that begin there, and where each ends. IndexError where one is cut off."""
    byte = data[at]
    raw = byte.astype(np.int64)
    more = byte >= 0x80
    if not more.any():
        return (raw >> 1) ^ -(raw & 1), at + 1
    raw &= 0x7F
    ends = at + 1
    places = np.flatnonzero(more)
    for number in range(1, _VARINT_BYTES):
        byte = data[ends[places]]
        raw[places] |= (byte & 0x7F).astype(np.int64) << (7 * number)
        ends[places] += 1
        places = places[byte >= 0x80]
        if not len(places):
            found = (raw >> 1) ^ -(raw & 1)
            _insist(found >> 31 == found >> 63)  # others may be too large for what they are
            return found, ends
    raise _Unlike


def _field(data: Bytes, at: Integers, limit: Integers) -> tuple[_Field, Integers]:
    lengths, starts = _varints(data, at)
    _insist(lengths >= -1)
    stops = starts + np.maximum(lengths, 0)
    _insist(stops <= limit)
    return _Field(starts, lengths), stops


def _headers(data: Bytes, at: Integers, counts: Integers, limit: Integers) -> tuple[_Field, _Field, Integers]:
    """The first header of all records, then the second, and so on; in the end they stand record by record."""
    most = int(counts.max())
    _insist(counts >= 0)
    if not most:
        none = _Field(np.zeros(0, np.int64), np.zeros(0, np.int64))
        return none, none, at
    if most > _MOST_HEADERS:
        raise _Unlike
    begins = np.cumsum(counts) - counts
    found = np.empty((4, int(counts.sum())), np.int64)
    at = at.copy()
    for number in range(most):
        rows = np.flatnonzero(counts > number)
        name, stops = _field(data, at[rows], limit[rows])
        _insist(name.lengths >= 0)
        value, stops = _field(data, stops, limit[rows])
        found[:, begins[rows] + number] = (*name, *value)
        at[rows] = stops
    return _Field(found[0], found[1]), _Field(found[2], found[3]), at
