"""The time of the record that a group reads next, from the first bytes there."""

from __future__ import annotations

import pytest

from headrace.core.ids import TopicPartition
from headrace.observe.record_times import NOTHING_LEFT, RecordTimes, time_in
from headrace.protocol.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, assign, reseal
from headrace.protocol.compression import Compression
from headrace.protocol.messages.fetch_response import PartitionData
from headrace.protocol.records import NewRecord, encode_batch

T0 = 1_760_000_000_000


def batch(base: int, *times: int, codec: Compression = Compression.NONE) -> bytearray:
    made = encode_batch([NewRecord(b"value", timestamp=time) for time in times], compression=codec)
    assign(made, 0, base, 1)
    return made


def marker(offset: int) -> bytearray:
    made = batch(offset, T0)
    made[22] |= CONTROL_FLAG | TRANSACTIONAL_FLAG
    reseal(made, 0, len(made))
    return made


def data(records: bytes, end: int = 1000, code: int = 0) -> PartitionData:
    return PartitionData(high_watermark=end, records=records, error_code=code)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_the_record_at_the_offset_itself(codec: Compression) -> None:
    told = data(bytes(batch(10, T0, T0 + 7, T0 + 9, codec=codec)))
    assert [time_in(told, offset) for offset in (10, 11, 12)] == [T0, T0 + 7, T0 + 9]


def test_a_batch_that_is_cut_off_tells_the_time_of_its_first_record() -> None:
    assert time_in(data(bytes(batch(10, T0, T0 + 7))[:70]), 11) == T0


def test_batches_before_the_offset_and_marks_are_passed_over() -> None:
    told = bytes(batch(10, T0) + marker(11) + batch(12, T0 + 50))
    assert time_in(data(told), 11) == T0 + 50


def test_only_marks_are_left() -> None:
    assert time_in(data(bytes(batch(10, T0) + marker(11)), end=12), 11) == NOTHING_LEFT


def test_nobody_can_tell() -> None:
    assert time_in(data(b""), 10) is None
    assert time_in(data(bytes(marker(11))), 11) is None, "more follows, which did not fit"
    assert time_in(data(bytes(batch(10, T0)), code=6), 10) is None
    assert time_in(data(bytes(batch(10, -1))), 10) is None, "the producer gave no time"


def test_a_commit_that_does_not_move_is_not_asked_for_again() -> None:
    times = RecordTimes()
    here, gone, marks = ((TopicPartition("orders", at), 5) for at in range(3))
    times.known = {here: T0, gone: T0, marks: NOTHING_LEFT}
    times.keep([here, marks])
    assert times.known == {here: T0}, "behind marks a record may have come"
