"""The checksum of rows: the same in any order and in any parts, another as soon as anything is."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.spark.sink.checksum import Checksum, checksum, total
from headrace.spark.sink.encoding import Columns

Row = tuple[bytes | None, bytes | None]
_data = st.none() | st.binary(max_size=40)
_rows = st.lists(st.tuples(_data, _data), min_size=1, max_size=40)


def _of(rows: list[Row]) -> Checksum:
    return checksum(
        Columns(
            pa.array([value for _, value in rows], pa.binary()),
            pa.array([key for key, _ in rows], pa.binary()),
        )
    )


@settings(max_examples=80, deadline=None)
@given(_rows, st.randoms(use_true_random=False), st.integers(0, 40))
def test_order_and_parts_do_not_matter(rows: list[Row], chance: random.Random, cut: int) -> None:
    shuffled = rows[:]
    chance.shuffle(shuffled)
    assert _of(shuffled) == _of(rows) == total([_of(rows[:cut]), _of(rows[cut:])])


@settings(max_examples=150, deadline=None)
@given(_rows, st.data())
def test_another_set_of_rows_has_another_checksum(rows: list[Row], data: st.DataObject) -> None:
    other = rows[:]
    at = data.draw(st.integers(0, len(rows) - 1))
    other[at] = data.draw(st.tuples(_data, _data))
    if sorted(map(repr, other)) != sorted(map(repr, rows)):
        assert _of(other) != _of(rows)


def test_rows_that_exchange_parts_are_seen() -> None:
    assert _of([(b"a", b"1"), (b"b", b"2")]) != _of([(b"a", b"2"), (b"b", b"1")])
    assert _of([(b"a", b"1")]) != _of([(b"1", b"a")])
    assert _of([(None, b"")]) != _of([(b"", b"")]) != _of([(b"", None)])


def test_single_bits_at_the_same_place_of_several_words_are_seen() -> None:
    """With plain weighted sums, flips of the highest bits of two words would cancel each other."""
    seen = set()
    for first in range(7, 128, 8):
        for second in range(128):
            word = bytearray(32)
            word[first // 8] ^= 1 << first % 8
            word[16 + second // 8] ^= 1 << second % 8
            seen.add(_of([(None, bytes(word))]))
    assert len(seen) == 16 * 128


def test_lengths_count_and_not_only_bytes() -> None:
    assert len({_of([(b"", b"\0" * length)]) for length in range(40)}) == 40


def test_a_checksum_is_written_in_32_digits() -> None:
    assert len(_of([(b"a", b"b")]).text) == 32
