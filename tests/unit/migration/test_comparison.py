from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from headrace.migration.comparison import Tally, compare
from headrace.migration.places import Place, common_range, samples, whole
from headrace.protocol.batch import assign, read_header
from headrace.protocol.records import NewRecord, decode_records, encode_batch, rebuild_batch


def batch(offset: int, *values: bytes, epoch: int = 0) -> bytearray:
    made = bytearray(encode_batch([NewRecord(value, key=value, timestamp=1) for value in values]))
    assign(made, 0, offset, epoch)
    return made


async def stream(batches: Sequence[bytearray]) -> AsyncIterator[memoryview]:
    for each in batches:
        yield memoryview(each)


def compared(there: Sequence[bytearray], here: Sequence[bytearray], *, is_compacted: bool = False) -> Tally:
    return asyncio.run(compare(stream(there), stream(here), is_compacted=is_compacted))


def test_the_same_but_for_leader_epochs() -> None:
    tally = compared([batch(0, b"a", b"b"), batch(2, b"c")], [batch(0, b"a", b"b", epoch=7), batch(2, b"c")])
    assert (tally.difference, tally.batches, tally.records) == (None, 2, 3)


def test_the_digest_knows_what_was_compared_and_not_the_epochs() -> None:
    one, other = [batch(0, b"a")], [batch(0, b"a", epoch=7)]
    assert compared(one, one).digest == compared(other, other).digest
    assert compared(one, one).digest != compared([batch(0, b"b")], [batch(0, b"b")]).digest


@pytest.mark.parametrize(
    ("here", "said"),
    [
        ([batch(0, b"a"), batch(1, b"X")], "offset 1: not the same bytes"),
        ([batch(0, b"a"), batch(2, b"b")], "goes on at offset 1, here it is 2"),
        ([batch(0, b"a"), batch(1, b"b", b"c")], "the batch ends at 1 at the source, at 2 here"),
        ([batch(0, b"a")], "only the source has a batch at offset 1"),
        ([batch(0, b"a"), batch(1, b"b"), batch(2, b"c")], "only here has a batch at offset 2"),
    ],
)
def test_each_kind_of_difference_is_named(here: list[bytearray], said: str) -> None:
    tally = compared([batch(0, b"a"), batch(1, b"b")], here)
    assert tally.difference is not None
    assert said in tally.difference


def test_a_flipped_bit_is_named_by_its_side() -> None:
    damaged = batch(0, b"a")
    damaged[-1] ^= 1
    tally = compared([batch(0, b"a")], [damaged])
    assert tally.difference is not None
    assert tally.difference.startswith("here: checksum")


def without(made: bytearray, *offsets: int) -> bytearray:
    """As compaction leaves it: the batch keeps its ends."""
    left = [each for each in decode_records(made) if each.offset not in offsets]
    return rebuild_batch(read_header(made), left)


def test_compaction_may_take_records_on_either_side_but_change_none() -> None:
    there = [batch(0, b"a", b"b", b"c"), batch(3, b"d", b"e")]
    here = [without(there[0], 1), batch(3, b"d", b"e")]
    tally = compared(there, here, is_compacted=True)
    assert (tally.difference, tally.only_at_source, tally.only_here) == (None, 1, 0)
    assert compared(here, there, is_compacted=True).only_here == 1
    assert compared(there, here).difference is not None
    changed = [batch(0, b"a", b"b", b"X"), there[1]]
    assert compared(there, changed, is_compacted=True).difference == "offset 2: not the same record"


def test_batches_that_compaction_cut_elsewhere_are_compared_up_to_a_common_end() -> None:
    there = [batch(0, b"a"), batch(1, b"b"), batch(2, b"c", b"d")]
    here = [batch(0, b"a", b"b"), batch(2, b"c", b"d")]
    tally = compared(there, here, is_compacted=True)
    assert (tally.difference, tally.records, tally.only_at_source) == (None, 4, 0)


def test_what_both_have() -> None:
    assert common_range((0, 10), (5, 8)) == (5, 8)
    assert common_range((9, 10), (5, 8)) == (9, 9)
    assert whole(9, 9) == []
    assert whole(5, 8) == [Place(5, 8, None)]


def test_samples_have_both_ends_and_are_the_same_for_a_seed() -> None:
    drawn = samples(100, 1000, 8, "0 orders-1", 50)
    assert drawn == samples(100, 1000, 8, "0 orders-1", 50)
    assert drawn != samples(100, 1000, 8, "1 orders-1", 50)
    assert (drawn[0].start, drawn[-1].start, len(drawn)) == (100, 999, 10)
    assert samples(0, 0, 8, "", 50) == []
    assert drawn[0].behind(300) == Place(300, 1000, 50)
    assert drawn[0].behind(1000) is None, "compared already"
    assert {place.start for place in samples(7, 8, 8, "", 50)} == {7}
