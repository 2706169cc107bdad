"""Rows, as Arrow columns, into the records of batches. No row becomes a Python object.

Each record is a few varints, the key, a varint, the value and the headers. The varints of all rows are
computed at once; Arrow then joins the columns row by row into one buffer. The records of a batch are a slice
of that buffer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.transactional_producer import Records
from headrace.core.ids import TopicPartition
from headrace.core.ports import Buffer
from headrace.protocol.compression import Compression, compress
from headrace.protocol.record_spans import varint
from headrace.spark.sink.varints import Integers, packed, varint_lengths

_NULL = 1
"""The varint of -1."""
_NO_HEADERS = b"\x00"


class Columns(NamedTuple):
    """Rows that go to one place or to many. Binary columns; `headers` are encoded, with their count."""

    value: Any
    key: Any | None = None
    headers: Any | None = None
    timestamps: Integers | None = None

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self if each is not None)

    def take(self, rows: npt.NDArray[np.int64]) -> Columns:
        indices = pa.array(rows)
        return Columns(
            self.value.take(indices),
            None if self.key is None else self.key.take(indices),
            None if self.headers is None else self.headers.take(indices),
            None if self.timestamps is None else self.timestamps[rows],
        )


class Portion(NamedTuple):
    """Rows of one partition of the target, in its order, and what offsets they have at the source. No column
    is None."""

    target: TopicPartition
    columns: Columns
    sources: Integers


class Gathered(NamedTuple):
    """Portions one behind the other. A target may come more than once, its rows in their order."""

    targets: list[TopicPartition]
    firsts: Integers
    """The first row of each of them."""
    columns: Columns
    sources: Integers


def gathered(portions: Iterable[Portion], least_bytes: int) -> Iterator[Gathered]:
    """Each with so many bytes at least, if there are as many: so a partition that has few records costs as
    little as one of many."""
    waiting: list[Portion] = []
    waiting_bytes = 0
    for portion in portions:
        waiting.append(portion)
        waiting_bytes += portion.columns.nbytes
        if waiting_bytes >= least_bytes:
            yield _together(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield _together(waiting)


def _together(portions: list[Portion]) -> Gathered:
    targets = [portion.target for portion in portions]
    counts = [len(portion.sources) for portion in portions]
    firsts = np.cumsum([0, *counts[:-1]], dtype=np.int64)
    if len(portions) == 1:
        return Gathered(targets, firsts, portions[0].columns, portions[0].sources)
    values, keys, headers, times = zip(*(portion.columns for portion in portions), strict=True)
    value, key, header = (pa.concat_arrays(each) for each in (values, keys, headers))
    columns = Columns(value, key, header, np.concatenate(times))
    return Gathered(targets, firsts, columns, np.concatenate([portion.sources for portion in portions]))


def lengths_of(column: Any) -> Integers:
    """-1 for a null."""
    lengths: Integers = pc.fill_null(pc.binary_length(column), -1).to_numpy().astype(np.int64)
    return lengths


def encode_headers(column: Any) -> Any:
    """A list of (key, value) in each row, into what a record ends with."""
    # A null is a list without entries: `flatten` has none of it either. Filling nulls costs 2 us a row.
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    entries = column.flatten()
    keys, values = pc.struct_field(entries, 0), pc.struct_field(entries, 1)
    return encode_entries(lengths.to_numpy().astype(np.int64), keys.cast(pa.binary()), values)


def encode_entries(counts: Integers, keys: Any, values: Any, one_more: bytes = b"") -> Any:
    """Headers of which each row has so many, one row's behind the other's, into what a record ends with.
    `one_more`, as `entry` makes it, comes behind those of every row."""
    rows = len(counts)
    if not len(keys):
        return _repeated(varint(int(bool(one_more))) + one_more, rows)
    if keys.null_count:
        raise ValueError("a header has no key")
    parts = pc.binary_join_element_wise(
        packed([lengths_of(keys)]), keys, packed([lengths_of(values)]), values.cast(pa.binary()), b"",
        null_handling="replace",
    )  # fmt: skip
    # The entries of a row lie next to each other: a row's bytes are a range of theirs.
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    offsets = _offsets(parts)[starts].astype(np.int32)
    joined = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), parts.buffers()[2]])
    return pc.binary_join_element_wise(packed([counts + bool(one_more)]), joined, one_more, b"")


def _repeated(content: bytes, rows: int) -> Any:
    ends = np.arange(rows + 1, dtype=np.int32) * len(content)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(content * rows)])


def entry(name: bytes, value: bytes) -> bytes:
    """One header as it stands in a record."""
    return varint(len(name)) + name + varint(len(value)) + value


def _offsets(column: Any) -> npt.NDArray[np.int32]:
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32, len(column) + 1, column.offset * 4)


def batch_starts(sizes: Integers, group_starts: Integers, limit: int) -> Integers:
    """The first row of each batch: a batch ends with its group, and before it would exceed `limit` bytes."""
    ends = np.append(group_starts[1:], len(sizes))
    totals = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    starts: list[int] = []
    for start, end in zip(group_starts.tolist(), ends.tolist(), strict=True):
        at = start
        while at < end:
            starts.append(at)
            fits = int(np.searchsorted(totals, totals[at] + limit, side="right")) - 1
            at = min(end, max(fits, at + 1))
    return np.array(starts, np.int64)


def encode(
    columns: Columns,
    group_starts: Integers,
    *,
    batch_bytes: int,
    compression: int = Compression.NONE,
    level: int | None = None,
    now_ms: int | None = None,
) -> Iterator[tuple[int, Records]]:
    """(group, records) of each batch. Rows of a group lie together; `group_starts` says where each begins."""
    rows = len(columns.value)
    if not rows:
        return
    value_lengths = lengths_of(columns.value)
    key_lengths = None if columns.key is None else lengths_of(columns.key)
    header_lengths = None if columns.headers is None else lengths_of(columns.headers)
    contents = np.maximum(value_lengths, 0, dtype=np.int64)
    contents += 1 if header_lengths is None else header_lengths
    if key_lengths is not None:
        contents += np.maximum(key_lengths, 0)
    starts = batch_starts(contents + 24, group_starts, batch_bytes)
    counts = np.diff(np.append(starts, rows))
    offset_deltas = np.arange(rows) - np.repeat(starts, counts)
    base, latest, time_deltas = _times(columns.timestamps, starts, counts, now_ms)
    fixed = contents + 1 + varint_lengths(offset_deltas) + varint_lengths(value_lengths)
    fixed += 1 if time_deltas is None else varint_lengths(time_deltas)
    fixed += 1 if key_lengths is None else varint_lengths(key_lengths)
    front: list[Integers | int] = [fixed, 0, 0 if time_deltas is None else time_deltas, offset_deltas]
    tail = _NO_HEADERS if columns.headers is None else columns.headers
    joined: tuple[Any, ...]
    if key_lengths is None:
        joined = (packed([*front, _NULL, value_lengths]), columns.value, tail)
    else:
        joined = (packed([*front, key_lengths]), columns.key, packed([value_lengths]), columns.value, tail)
    body = pc.binary_join_element_wise(*joined, b"", null_handling="replace")
    cuts = _offsets(body)[np.append(starts, rows)].tolist()
    groups = (np.searchsorted(group_starts, starts, side="right") - 1).tolist()
    data = memoryview(body.buffers()[2])
    for index, group in enumerate(groups):
        payload: Buffer = data[cuts[index] : cuts[index + 1]]
        if compression:
            payload = compress(compression, payload, level)
        count, first, last = int(counts[index]), int(base[index]), int(latest[index])
        yield group, Records(payload, count, first, last, int(compression))


def _times(
    timestamps: Integers | None, starts: Integers, counts: Integers, now_ms: int | None
) -> tuple[Integers, Integers, Integers | None]:
    """The first and the latest time of each batch, and how much later than the first each row is."""
    if timestamps is None:
        now = np.full(len(starts), int(time.time() * 1000) if now_ms is None else now_ms, np.int64)
        return now, now, None
    base = timestamps[starts]
    return base, np.maximum.reduceat(timestamps, starts), timestamps - np.repeat(base, counts)
