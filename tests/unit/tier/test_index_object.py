"""The object beside a segment's records: what goes in comes out, and what is damaged is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.tier.index_object import Aborted, CorruptIndexes, Indexes, decode, encode

SAMPLE = Indexes(
    100,
    [(103, 0), (110, 4000), (120, 9000)],
    [(1_000, 104), (2_000, 111)],
    [Aborted(7, 90, 105, 106), Aborted(8, 108, 300, 100)],
    b"a snapshot",
)


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 2**31 - 1))),
    st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 10**6))),
    st.none() | st.binary(max_size=50),
)
def test_what_goes_in_comes_out(
    offsets: list[tuple[int, int]], times: list[tuple[int, int]], producers: bytes | None
) -> None:
    base = 5_000_000_000
    given_ = Indexes(
        base,
        [(base + offset, position) for offset, position in offsets],
        [(time, base + offset) for time, offset in times],
        [Aborted(1, base - 5, base + 3, base + 4)],
        producers,
    )
    assert decode(encode(given_), base) == given_


@pytest.mark.parametrize(("offset", "position"), [(100, 0), (103, 0), (109, 0), (110, 4000), (999, 9000)])
def test_a_batch_is_looked_for_from_before_it(offset: int, position: int) -> None:
    assert SAMPLE.position_before(offset) == position


@pytest.mark.parametrize(("time", "offset"), [(0, 100), (1_000, 100), (1_001, 104), (2_001, 111)])
def test_a_time_is_looked_for_from_before_it(time: int, offset: int) -> None:
    assert SAMPLE.offset_before(time) == offset


def test_a_reader_hears_of_each_transaction_that_has_records_in_its_range() -> None:
    assert SAMPLE.aborted_within(100, 108) == [(7, 90)]
    assert SAMPLE.aborted_within(106, 109) == [(8, 108)]
    assert SAMPLE.aborted_within(106, 108) == []


@pytest.mark.parametrize("at", range(0, len(encode(SAMPLE)), 7))
def test_damage_is_refused(at: int) -> None:
    data = bytearray(encode(SAMPLE))
    data[at] ^= 0x01
    try:
        found = decode(bytes(data), SAMPLE.base_offset)
    except CorruptIndexes:
        return
    assert found == SAMPLE  # a letter of a number's form, which means the same


def test_what_is_cut_off_is_refused() -> None:
    data = encode(SAMPLE)
    for end in (0, 10, len(data) - 1):
        with pytest.raises(CorruptIndexes):
            decode(data[:end], SAMPLE.base_offset)
