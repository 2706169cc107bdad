from __future__ import annotations

from typing import Any

from headrace.protocol.batch_epochs import adopt_epoch, last_epoch
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import encode_batch
from headrace.replication.continuity import agrees
from tests.unit.log.material import NOW, records


def at_offset(made: bytearray, offset: int) -> bytearray:
    made[:8] = offset.to_bytes(8, "big")  # outside the checksum
    return made


def batch(offset: int, *values: bytes, **fields: Any) -> memoryview:
    return memoryview(at_offset(encode_batch(records(*values, timestamp=NOW), **fields), offset))


def test_the_same_batch_in_another_epoch_agrees() -> None:
    ours, theirs = batch(5, b"a", b"b"), batch(5, b"a", b"b")
    adopt_epoch(theirs, 77)
    assert agrees(ours, theirs, 7) is True


def test_another_record_at_the_same_offset_does_not() -> None:
    assert agrees(batch(5, b"a", b"b"), batch(5, b"a", b"x"), 7) is False


def test_batches_that_are_cut_otherwise_agree_by_their_records() -> None:
    assert agrees(batch(6, b"b"), batch(5, b"a", b"b"), 7) is True
    assert agrees(batch(6, b"b"), batch(5, b"a", b"x"), 7) is False


def test_what_lies_behind_the_end_is_not_compared() -> None:
    assert agrees(batch(5, b"a", b"b"), batch(5, b"a", b"b", b"c"), 7) is True


def test_nothing_in_common_says_nothing() -> None:
    assert agrees(batch(5, b"a", b"b"), batch(7, b"c"), 7) is None
    assert agrees(batch(5, b"a", b"b"), memoryview(b""), 7) is None
    assert agrees(batch(5, b"a", b"b"), batch(5, b"a", b"b")[:70], 7) is None


def test_markers_are_compared_by_whose_they_are() -> None:
    def marker(offset: int, producer_id: int, timestamp: int) -> memoryview:
        record = end_marker(commit=True, coordinator_epoch=1, timestamp=timestamp)
        made = encode_batch(
            [record], producer_id=producer_id, producer_epoch=0, transactional=True, control=True
        )
        return memoryview(at_offset(made, offset))

    assert agrees(marker(5, 1, NOW), marker(5, 1, NOW + 1), 6) is True  # a cleaner's note, say
    assert agrees(marker(5, 1, NOW), marker(5, 2, NOW), 6) is False
    assert agrees(marker(5, 1, NOW), batch(5, b"a"), 6) is False
    assert agrees(marker(5, 1, NOW), marker(6, 1, NOW), 6) is None


def test_epochs_are_written_into_whole_batches_only() -> None:
    joined = memoryview(bytearray(bytes(batch(0, b"a")) + bytes(batch(1, b"b"))[:-1]))
    assert adopt_epoch(joined, 9) == len(batch(0, b"a"))
    assert last_epoch(joined) == 9
    assert last_epoch(joined[:50]) == -1
