"""The keys that compaction reads are those of the decoder that makes whole records, or neither reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.core.errors import InvalidRecord
from headrace.protocol import record_spans as spans
from headrace.protocol.records import NewRecord, Record, decode_records, encode_batch, open_batch, seal

NULLABLE = st.one_of(st.none(), st.binary(max_size=200))
HEADERS = st.lists(st.tuples(st.text(max_size=5), NULLABLE), max_size=2).map(tuple)
RECORDS = st.lists(
    st.builds(NewRecord, NULLABLE, NULLABLE, st.integers(0, 2**42), HEADERS), min_size=1, max_size=80
)


def keys_of(batch: bytearray) -> tuple[list[bytes | None], list[int] | None, bool]:
    header, body = open_batch(batch)
    return spans.read_keys(body, header.record_count, header.last_offset_delta)


@given(RECORDS)
def test_keys_deltas_and_tombstones_are_those_of_the_records(records: list[NewRecord]) -> None:
    batch = encode_batch(records)
    keys, deltas, has_null = keys_of(batch)
    assert keys == [record.key for record in records]
    assert deltas is None
    assert has_null == any(record.value is None for record in records)
    _, body = open_batch(batch)
    bounds = spans.read_bounds(body, len(records))
    assert bounds[-1] == len(body)
    assert [spans.is_tombstone(body, at) for at in bounds[:-1]] == [r.value is None for r in records]
    base = records[0].timestamp
    assert spans.largest_timestamp(body, bounds[:-1], base) == max(record.timestamp for record in records)


@given(RECORDS, st.data())
def test_kept_records_are_copied_with_their_deltas(records: list[NewRecord], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.integers(0, len(records) - 1), min_size=1, unique=True).map(sorted))
    header, body = open_batch(encode_batch(records))
    bounds = spans.read_bounds(body, len(records))
    rest = b"".join(body[bounds[at] : bounds[at + 1]] for at in kept)
    smaller = seal(header._replace(record_count=len(kept)), rest)
    keys, deltas, _ = keys_of(smaller)
    assert keys == [records[at].key for at in kept]
    assert (list(range(len(kept))) if deltas is None else deltas) == kept


@given(RECORDS, st.integers(-(2**40), 2**40))
def test_another_base_timestamp_changes_no_record(records: list[NewRecord], later_by: int) -> None:
    header, body = open_batch(encode_batch(records))
    moved = spans.move_base_timestamp(body, spans.read_bounds(body, len(records)), later_by)
    changed = seal(header._replace(base_timestamp=header.base_timestamp + later_by), moved)
    assert list(decode_records(changed)) == list(decode_records(encode_batch(records)))


@settings(max_examples=500)
@given(RECORDS, st.data())
def test_broken_bytes_are_refused_or_read_as_the_decoder_reads_them(
    records: list[NewRecord], data: st.DataObject
) -> None:
    """Never another error. It may accept what the decoder refuses behind a key, never the other way round."""
    batch = encode_batch(records)
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded: list[Record] | None = list(decode_records(batch))
    except InvalidRecord:
        decoded = None
    try:
        keys, deltas, _ = keys_of(batch)
    except InvalidRecord:
        assert decoded is None
        return
    if decoded is not None:
        assert keys == [record.key for record in decoded]
        assert (deltas or list(range(len(keys)))) == [record.offset for record in decoded]


@pytest.mark.parametrize("count", [-1, 2, 1 << 30])
def test_a_count_that_cannot_be_is_refused(count: int) -> None:
    _, body = open_batch(encode_batch([NewRecord(b"v", b"k")]))
    with pytest.raises(InvalidRecord):
        spans.read_keys(body, count, count - 1)
