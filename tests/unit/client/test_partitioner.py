from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.partitioner import StickyPartitioner, murmur2, partition_for_key

with warnings.catch_warnings():
    # kafka-python reads its schemas by a deprecated call while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.partitioner.default import murmur2 as oracle


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        # The values of Java's own test of this hash.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_known_answers(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


@given(st.binary(max_size=100))
def test_another_client_agrees(key: bytes) -> None:
    assert murmur2(key) == oracle(key) & 0xFFFFFFFF


@given(st.binary(max_size=20), st.integers(1, 1000))
def test_partitions_exist(key: bytes, partitions: int) -> None:
    assert 0 <= partition_for_key(key, partitions) < partitions


def test_records_without_a_key_stay_until_the_batch_is_closed() -> None:
    partitioner = StickyPartitioner(start=2)
    assert [partitioner.choose("t", None, 3) for _ in range(4)] == [2, 2, 2, 2]
    partitioner.batch_closed("t")
    assert partitioner.choose("t", None, 3) == 0
    assert partitioner.choose("other", None, 3) == 2
    partitioner.batch_closed("never seen")
    assert partitioner.choose("never seen", None, 3) == 2


def test_keys_do_not_move() -> None:
    partitioner = StickyPartitioner()
    before = partitioner.choose("t", b"key", 7)
    partitioner.batch_closed("t")
    assert partitioner.choose("t", b"key", 7) == before == partition_for_key(b"key", 7)
