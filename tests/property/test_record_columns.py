"""Columns are those of the decoder that makes whole records; compiled and plain they are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.arrow.columns import END, FIRST, Bounds, Columns, RecordColumns, Taken, Wanted
from headrace.arrow.vector_columns import VectorColumns
from headrace.core.errors import InvalidRecord
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, read_header
from headrace.protocol.records import NewRecord, Record, decode_body, encode_batch
from tests.compiled_columns import compiled_maker

NULLABLE = st.one_of(st.none(), st.binary(max_size=150))
NAMES = st.one_of(st.text(max_size=80), st.just("\udcff"))
HEADERS = st.lists(st.tuples(NAMES, NULLABLE), max_size=3).map(tuple)
TIMES = st.one_of(st.integers(-1, 1000), st.just(2**61), st.just(-(2**61)))
RECORDS = st.lists(st.builds(NewRecord, NULLABLE, NULLABLE, TIMES, HEADERS), min_size=1, max_size=20)
NEAR_TIMES = st.integers(-1, 2**33)
NEAR_RECORDS = st.lists(
    st.builds(NewRecord, NULLABLE, NULLABLE, NEAR_TIMES, HEADERS), min_size=8, max_size=90
)
"""Batches that vectors take."""
KINDS = ("plain", "vectors", "compiled")
WANTED = st.builds(Wanted, st.booleans(), st.booleans(), st.booleans())
BOUNDS = st.builds(
    Bounds,
    st.sampled_from((FIRST, 5, 2**40 + 3)),
    st.sampled_from((END, 20, 2**40 + 20)),
    st.sampled_from((FIRST, 0, 500)),
    st.sampled_from((END, 700)),
)
BASES = st.sampled_from((0, 2**40))
Batch = tuple[BatchHeader, bytes]


def maker(kind: str) -> Callable[[Wanted, Bounds], Columns]:
    return {"plain": RecordColumns, "vectors": VectorColumns}.get(kind) or compiled_maker()


def opened(records: Sequence[NewRecord], base: int, *, append_time: bool = False) -> Batch:
    batch = encode_batch(records, base_offset=base, log_append_time=append_time)
    return read_header(batch), bytes(batch[HEADER_SIZE:])


def plain(value: object) -> object:
    """Bytes by their content, whatever holds them."""
    if isinstance(value, tuple):
        return tuple(plain(each) for each in value)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def add_all(columns: Columns, batches: Sequence[Batch]) -> list[bool]:
    """Which were refused."""
    refused = []
    for header, body in batches:
        try:
            columns.add(header, body)
            refused.append(False)
        except InvalidRecord:
            refused.append(True)
    return refused


@st.composite
def damaged(draw: st.DrawFn) -> Batch:
    """A batch of which some bytes are others, or whose end or header is."""
    records = draw(st.one_of(RECORDS, NEAR_RECORDS))
    header, body = opened(records, draw(BASES), append_time=draw(st.booleans()))
    content = bytearray(body)
    for at, byte in draw(st.lists(st.tuples(st.integers(0, len(body) - 1), st.integers(0, 255)), max_size=3)):
        content[at] = byte
    cut = draw(st.integers(0, len(content))) if draw(st.booleans()) else len(content)
    count = draw(st.sampled_from((header.record_count, 0, -1, header.record_count + 1, 2**31 - 1)))
    return header._replace(record_count=count), bytes(content[:cut])


@pytest.mark.parametrize("kind", KINDS[1:])
@given(batches=st.lists(damaged(), max_size=4), wanted=WANTED, bounds=BOUNDS)
def test_they_are_equal_to_the_plain_one(
    kind: str, batches: list[Batch], wanted: Wanted, bounds: Bounds
) -> None:
    faster, plain_one = maker(kind)(wanted, bounds), RecordColumns(wanted, bounds)
    for _ in range(2):  # also after what was taken
        assert add_all(faster, batches) == add_all(plain_one, batches)
        assert (faster.rows, faster.size) == (plain_one.rows, plain_one.size)
        assert plain(faster.take()) == plain(plain_one.take())


@pytest.mark.parametrize("kind", KINDS)
@given(
    batches=st.lists(st.tuples(st.one_of(RECORDS, NEAR_RECORDS), BASES, st.booleans()), max_size=3),
    bounds=BOUNDS,
)
def test_columns_are_those_of_the_records(
    kind: str, batches: list[tuple[list[NewRecord], int, bool]], bounds: Bounds
) -> None:
    columns = maker(kind)(Wanted(), bounds)
    expected: list[Record] = []
    for records, base, append_time in batches:
        header, body = opened(records, base, append_time=append_time)
        columns.add(header, body)
        expected += [
            record
            for record in decode_body(header, body)
            if bounds.first_offset <= record.offset < bounds.next_offset
            and bounds.first_ms <= record.timestamp < bounds.next_ms
        ]
    assert read(Taken._make(columns.take())) == expected


def read(taken: Taken) -> list[Record]:
    """Column by column, as Arrow's layout says."""
    rows = taken.rows
    offsets, times = (unpack(f"{rows}q", bytes(each)) for each in (taken.offsets, taken.timestamps))
    keys, values = _contents(taken.keys), _contents(taken.values)
    assert taken.header_ends is not None
    ends = unpack(f"{rows + 1}i", bytes(taken.header_ends))
    names = [(name or b"").decode("utf-8", "surrogateescape") for name in _contents(taken.header_names)]
    pairs = list(zip(names, _contents(taken.header_values), strict=True))
    return [
        Record(offsets[row], times[row], keys[row], values[row], tuple(pairs[ends[row] : ends[row + 1]]))
        for row in range(rows)
    ]


def _contents(column: tuple[object, object, object] | None) -> list[bytes | None]:
    assert column is not None
    ends_bytes, data, valid = (None if each is None else bytes(each) for each in column)  # type: ignore[call-overload]  # buffers
    assert ends_bytes is not None
    assert data is not None
    ends = unpack(f"{len(ends_bytes) // 4}i", ends_bytes)
    return [
        data[ends[row] : ends[row + 1]] if valid is None or valid[row >> 3] >> (row & 7) & 1 else None
        for row in range(len(ends) - 1)
    ]


def test_a_refused_batch_leaves_nothing_behind() -> None:
    header, body = opened([NewRecord(b"value", b"key", 1, (("a", b"b"),))] * 9, 0)
    for columns in [maker(kind)(Wanted(), Bounds()) for kind in KINDS]:
        columns.add(header, body)
        with pytest.raises(InvalidRecord):
            columns.add(header, body[:-1])
        assert (columns.rows, columns.size) == (9, 9 * 10)


def test_one_that_was_not_made_is_refused() -> None:
    made = type(compiled_maker()(Wanted(), Bounds()))
    empty = made.__new__(made)
    with pytest.raises(TypeError):
        empty.add(*opened([NewRecord(b"value")], 0))
    with pytest.raises(TypeError):
        empty.take()


def test_vectors_look_at_usual_batches_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        NewRecord(
            b"v" * (n * 9), None if n % 3 else b"key", 10**12 + n * 40, (("a", None), ("b", b"c"))[: n % 3]
        )
        for n in range(300)
    ]
    header, body = opened(records, 7)
    monkeypatch.setattr(RecordColumns, "add", None)
    columns = VectorColumns(Wanted(), Bounds())
    columns.add(header, body)
    assert read(Taken._make(columns.take())) == list(decode_body(header, body))
