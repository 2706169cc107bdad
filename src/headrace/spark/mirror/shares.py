"""Which task of a batch reads which partitions, and what of their records goes on. Pure."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.arrow.columns import Binary, Taken
from headrace.core.ids import TopicPartition
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.lake.checkpoint import Offsets
from headrace.spark.mirror.loops import HEADER
from headrace.spark.sink.encoding import Columns, Portion, encode_entries, entry
from headrace.spark.sink.varints import Integers

_NAME: Final = HEADER.encode()


class Passing(NamedTuple):
    """Between which clusters records go: those that have been on the target are left out."""

    source: str
    target: str


class Span(NamedTuple):
    source: TopicPartition
    first: int
    end: int
    target: TopicPartition


class Share(NamedTuple):
    """What one task reads. A partition is read by one, or its records would be written out of order."""

    mirror: str
    kafka: KafkaProperties
    passing: Passing
    spans: tuple[Span, ...]


def spans_of(begin: Offsets, end: Offsets, targets: dict[str, str]) -> list[Span]:
    return [
        Span(TopicPartition(*each), first, end[each], TopicPartition(targets[each[0]], each[1]))
        for each, first in begin.items()
    ]


def shared(spans: list[Span], tasks: int) -> list[tuple[Span, ...]]:
    """Among so many tasks at most, each about as many offsets. The same spans are always shared alike: a
    batch that has to be written again is compared with what its tasks wrote."""
    shares: list[list[Span]] = [[] for _ in range(max(1, min(tasks, len(spans))))]
    loads = [0] * len(shares)
    for span in sorted(spans, key=lambda each: (each.first - each.end, each)):
        lightest = loads.index(min(loads))
        shares[lightest].append(span)
        loads[lightest] += span.end - span.first
    return [tuple(share) for share in shares if share]


def portion_of(block: Taken, target: TopicPartition, passing: Passing) -> Portion:
    """The records of a block with one header more each, without those that were on the target before."""
    offsets = np.frombuffer(block.offsets, np.int64)
    times = np.frombuffer(block.timestamps, np.int64)
    ends = np.frombuffer(_there(block.header_ends), np.int32)
    counts = np.diff(ends).astype(np.int64)
    names, values = (_array(each, int(ends[-1])) for each in (block.header_names, block.header_values))
    origin = entry(_NAME, passing.source.encode())
    columns = Columns(
        _array(block.values, block.rows),
        _array(block.keys, block.rows),
        encode_entries(counts, names, values, origin),
        times,
    )
    comes_back = _comes_back(counts, names, values, passing.target)
    if not len(comes_back):
        return Portion(target, columns, offsets)
    kept = np.delete(np.arange(block.rows), comes_back)
    return Portion(target, columns.take(kept), offsets[kept])


def _comes_back(counts: Integers, names: Any, values: Any, cluster: str) -> Integers:
    """The rows with a header that says so."""
    if not len(names):
        return np.zeros(0, np.int64)
    said = pc.and_(pc.equal(names, _NAME), pc.equal(values, cluster.encode()))
    entries = np.flatnonzero(pc.fill_null(said, fill_value=False).to_numpy(zero_copy_only=False))
    return np.unique(np.searchsorted(np.cumsum(counts), entries, side="right"))


def _there(buffer: object) -> memoryview:
    assert buffer is not None, "the columns were made with headers"
    return memoryview(buffer)  # type: ignore[arg-type]  # a buffer


def _array(column: Binary | None, rows: int) -> Any:
    assert column is not None, "the columns were made with keys, values and headers"
    ends, data, valid = column
    buffers = [None if valid is None else pa.py_buffer(valid), pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)
