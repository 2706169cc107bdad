"""What a task reads, and what of the records goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.arrow.columns import Bounds, Taken, Wanted
from headrace.arrow.vector_columns import VectorColumns
from headrace.core.ids import TopicPartition
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, read_header
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord, Record, decode_body, encode_batch
from headrace.spark.mirror.loops import HEADER
from headrace.spark.mirror.shares import Passing, Span, portion_of, shared, spans_of
from headrace.spark.sink.encoding import Portion, encode

SOURCE, TARGET = "the-source", "the-target"
PASSING = Passing(SOURCE, TARGET)
PLACE = TopicPartition("copy", 2)
DATA = st.none() | st.binary(max_size=200)
ORIGINS = st.tuples(
    st.just(HEADER), st.sampled_from((None, b"", b"another", SOURCE.encode(), TARGET.encode()))
)
OTHERS = st.tuples(st.text(max_size=9) | st.just("\udcff"), DATA | st.just(TARGET.encode()))
HEADERS = st.lists(ORIGINS | OTHERS, max_size=3).map(tuple)
RECORDS = st.lists(st.builds(NewRecord, DATA, DATA, st.integers(0, 2**40), HEADERS), min_size=1, max_size=60)


def block_of(records: list[NewRecord], base: int) -> Taken:
    batch = encode_batch(records, base_offset=base)
    columns = VectorColumns(Wanted(), Bounds())
    columns.add(read_header(batch), bytes(batch[HEADER_SIZE:]))
    return Taken._make(columns.take())


def written(portion: Portion) -> list[Record]:
    """Offsets are those of the source."""
    found: list[Record] = []
    first = np.zeros(1, np.int64)
    for _, each in encode(portion.columns, first, batch_bytes=1000, compression=Compression.NONE, level=None):
        header = BatchHeader(
            0, 0, 0, 2, 0, 0, each.records - 1, each.base_timestamp, each.max_timestamp, 0, 0, 0, each.records
        )
        found += decode_body(header, bytes(each.payload))
    return [
        record._replace(offset=offset) for record, offset in zip(found, portion.sources.tolist(), strict=True)
    ]


@given(RECORDS, st.sampled_from((0, 2**40)))
def test_each_record_goes_on_with_one_header_more_unless_it_comes_back(
    records: list[NewRecord], base: int
) -> None:
    came_back = (HEADER, TARGET.encode())
    expected = [
        Record(base + at, each.timestamp, each.key, each.value, (*each.headers, (HEADER, SOURCE.encode())))
        for at, each in enumerate(records)
        if came_back not in each.headers
    ]
    portion = portion_of(block_of(records, base), PLACE, PASSING)
    assert portion.target == PLACE
    assert (written(portion) if expected else len(portion.sources)) == (expected or 0)


def span(partition: int, first: int, end: int) -> Span:
    return Span(TopicPartition("t", partition), first, end, TopicPartition("copy", partition))


def test_spans_are_those_of_the_step() -> None:
    begin, end = {("t", 0): 5, ("t", 1): 0}, {("t", 0): 9, ("t", 1): 3}
    assert spans_of(begin, end, {"t": "copy"}) == [span(0, 5, 9), span(1, 0, 3)]


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 1000)), min_size=1, unique_by=lambda one: one[0]),
    st.integers(1, 9),
    st.randoms(),
)
def test_each_span_is_read_by_one_task_always_the_same(
    sizes: list[tuple[int, int]], tasks: int, chance: Any
) -> None:
    spans = [span(partition, 0, size) for partition, size in sizes]
    shares = shared(spans, tasks)
    assert sorted(each for share in shares for each in share) == sorted(spans)
    assert len(shares) == min(tasks, len(spans))
    loads = [sum(each.end - each.first for each in share) for share in shares]
    assert max(loads) - min(loads) <= max(size for _, size in sizes)
    chance.shuffle(spans)
    assert shared(spans, tasks) == shares
