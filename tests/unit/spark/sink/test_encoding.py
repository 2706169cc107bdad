"""What is encoded by columns is what `protocol.records` encodes row by row, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.client.partitioner import murmur2 as murmur2_of_one
from headrace.client.partitioner import partition_for_key
from headrace.core.ids import TopicPartition
from headrace.protocol import batch as batches
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord, decode_records, encode_batch, seal
from headrace.spark.sink.encoding import Columns, Portion, batch_starts, encode, encode_headers, gathered
from headrace.spark.sink.partitioning import Turns, choose, murmur2
from headrace.spark.sink.varints import packed, varint_lengths

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def _columns(records: list[NewRecord], *, keyed: bool = True, headed: bool = True) -> Columns:
    headers = [[{"key": key, "value": value} for key, value in each.headers] for each in records]
    return Columns(
        pa.array([each.value for each in records], pa.binary()),
        pa.array([each.key for each in records], pa.binary()) if keyed else None,
        encode_headers(pa.array(headers, _HEADERS)) if headed else None,
        np.array([each.timestamp for each in records], np.int64),
    )


def _all(columns: Columns, starts: list[int], **options: Any) -> list[tuple[int, bytes, int]]:
    found = encode(columns, np.array(starts, np.int64), **{"batch_bytes": 1 << 20, **options})
    return [(group, bytes(records.payload), records.records) for group, records in found]


def _one_by_one(records: list[NewRecord]) -> bytes:
    return bytes(encode_batch(records)[batches.HEADER_SIZE :])


_data = st.none() | st.binary(max_size=300)
_names = st.text(max_size=12).filter(lambda text: "\x00" not in text)
_record = st.builds(
    NewRecord,
    value=_data,
    key=_data,
    timestamp=st.integers(0, 2**42),
    headers=st.lists(st.tuples(_names, _data), max_size=3).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_record, min_size=1, max_size=70))
def test_columns_and_rows_give_the_same_bytes(records: list[NewRecord]) -> None:
    assert _all(_columns(records), [0]) == [(0, _one_by_one(records), len(records))]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.builds(NewRecord, value=_data, key=st.none(), timestamp=st.just(5), headers=st.just(())),
        min_size=1,
        max_size=300,
    )
)
def test_values_alone_need_no_columns_of_keys_and_headers(records: list[NewRecord]) -> None:
    columns = _columns(records, keyed=False, headed=False)._replace(timestamps=None)
    assert _all(columns, [0], now_ms=5) == [(0, _one_by_one(records), len(records))]


def test_groups_become_batches_of_their_own_and_large_ones_are_split() -> None:
    records = [NewRecord(b"v" * 100, b"k%d" % number, 7) for number in range(100)]
    found = _all(_columns(records), [0, 30], batch_bytes=2_000)
    assert [group for group, _, _ in found] == sorted(group for group, _, _ in found)
    assert [sum(count for group, _, count in found if group == each) for each in (0, 1)] == [30, 70]
    at = 0
    for _, payload, count in found:
        assert payload == _one_by_one(records[at : at + count])
        assert len(payload) <= 2_000
        at += count


def test_a_row_larger_than_a_batch_gets_one_of_its_own() -> None:
    assert batch_starts(np.array([5, 500, 5, 5]), np.array([0]), 10).tolist() == [0, 1, 2]


@pytest.mark.parametrize("codec", [Compression.ZSTD, Compression.LZ4, Compression.GZIP])
def test_a_compressed_batch_opens_again(codec: Compression) -> None:
    records = [NewRecord(b"value %d" % number, timestamp=9) for number in range(50)]
    ((_, made),) = encode(_columns(records), np.array([0]), batch_bytes=1 << 20, compression=codec)
    header = batches.read_header(encode_batch(records, compression=codec))
    sealed = seal(header._replace(max_timestamp=made.max_timestamp), made.payload)
    batches.check(sealed)
    assert [(each.value, each.timestamp) for each in decode_records(sealed)] == [
        (each.value, 9) for each in records
    ]


def test_slices_of_columns_are_read_from_where_they_begin() -> None:
    records = [NewRecord(b"%d" % number, b"k" * number, 3, (("h", b"%d" % number),)) for number in range(20)]
    headers = [[{"key": key, "value": value} for key, value in each.headers] for each in records]
    columns = Columns(
        pa.array([each.value for each in records], pa.binary())[5:15],
        pa.array([each.key for each in records], pa.binary())[5:15],
        encode_headers(pa.array(headers, _HEADERS)[5:15]),
        np.full(10, 3),
    )
    assert _all(columns, [0]) == [(0, _one_by_one(records[5:15]), 10)]


def test_a_header_without_a_key_is_refused() -> None:
    with pytest.raises(ValueError, match="header"):
        encode_headers(pa.array([[{"key": None, "value": b"x"}]], _HEADERS))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_varints_are_as_long_as_they_say(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    assert [len(each) for each in packed([column]).to_pylist()] == varint_lengths(column).tolist()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=100), min_size=1, max_size=50))
def test_keys_are_hashed_as_everywhere(keys: list[bytes]) -> None:
    column = pa.array(keys, pa.binary())
    assert murmur2(column).tolist() == [murmur2_of_one(key) for key in keys]
    sizes = np.ones(len(keys), np.int64)
    assert choose(column, sizes, 7, Turns(0, 100)).tolist() == [partition_for_key(key, 7) for key in keys]


def test_rows_without_a_key_fill_one_partition_after_the_other() -> None:
    turns = Turns(1, 100)
    sizes = np.full(10, 40, np.int64)
    first = choose(None, sizes, 3, turns).tolist()
    assert first == [1, 1, 2, 2, 0, 0, 0, 1, 1, 2]
    assert choose(None, sizes, 3, turns).tolist()[0] == 0


def test_only_rows_without_a_key_take_turns() -> None:
    keys = pa.array([b"a", None, b"b", None], pa.binary())
    chosen = choose(keys, np.full(4, 10, np.int64), 5, Turns(3, 1000)).tolist()
    assert chosen == [partition_for_key(b"a", 5), 3, partition_for_key(b"b", 5), 3]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.lists(_record, min_size=1, max_size=9)), max_size=7),
    st.integers(1, 3000),
)
def test_portions_are_written_as_they_are_alone(
    given: list[tuple[int, list[NewRecord]]], least_bytes: int
) -> None:
    portions = [
        Portion(TopicPartition("t", partition), _columns(records), np.arange(len(records)) + at * 100)
        for at, (partition, records) in enumerate(given)
    ]
    expected = [(portion.target, *_all(portion.columns, [0])[0][1:]) for portion in portions]
    found, sources = [], []
    for some in gathered(portions, least_bytes):
        found += [(some.targets[group], *rest) for group, *rest in _all(some.columns, some.firsts.tolist())]
        sources += some.sources.tolist()
    assert found == expected
    assert sources == [offset for portion in portions for offset in portion.sources.tolist()]
