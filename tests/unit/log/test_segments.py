"""Reading a segment file: batches and records, over chunks, and what is refused."""

from __future__ import annotations

import pytest

from headrace.core.errors import CorruptLog
from headrace.core.ports import File
from headrace.log import segments
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, encode_batch
from headrace.testing.disk import SimulatedDisk


def written(*batches: bytes | bytearray) -> tuple[File, int]:
    disk = SimulatedDisk()
    disk.make_dirs("/d")
    file = disk.open("/d/s", create=True)
    data = b"".join(batches)
    file.pwrite(data, 0)
    return file, len(data)


def batch(base_offset: int, *values: bytes) -> bytearray:
    return encode_batch([NewRecord(value, b"k", 1) for value in values], base_offset=base_offset)


@pytest.mark.parametrize("chunk_bytes", [61, 100, 1 << 20])
def test_batches_come_whole_whatever_the_chunk(chunk_bytes: int) -> None:
    wanted = [batch(0, b"a"), batch(1, b"b" * 500), batch(2, b"c", b"d")]
    file, size = written(*wanted)
    found = list(segments.batches(file, 0, size, chunk_bytes=chunk_bytes))
    assert [bytes(data) for _, _, data in found] == [bytes(each) for each in wanted]
    assert [header.base_offset for _, header, _ in found] == [0, 1, 2]


def test_records_come_from_an_offset_on_and_without_markers() -> None:
    marker = encode_batch(
        [end_marker(commit=True, coordinator_epoch=0, timestamp=1)],
        base_offset=2,
        producer_id=1,
        producer_epoch=0,
        control=True,
    )
    file, size = written(batch(0, b"a", b"b"), marker, batch(3, b"c"))
    assert [record.value for record in segments.records(file, 0, size, from_offset=1)] == [b"b", b"c"]


def test_a_torn_tail_is_damage() -> None:
    file, size = written(batch(0, b"a"), batch(1, b"b")[:-1])
    with pytest.raises(CorruptLog, match="batch length"):
        list(segments.batches(file, 0, size))
    file, size = written(batch(0, b"a"), batch(1, b"b")[:30])
    with pytest.raises(CorruptLog, match="no batch"):
        list(segments.batches(file, 0, size))
    with pytest.raises(CorruptLog, match="ends at"):
        list(segments.batches(file, 0, size + 100))


def test_offsets_ascend_and_stay_below_the_limit() -> None:
    file, size = written(batch(4, b"a"), batch(2, b"b"))
    with pytest.raises(CorruptLog, match="offset 2"):
        list(segments.batches(file, 0, size))
    with pytest.raises(CorruptLog, match="offset 4"):
        list(segments.batches(file, 0, size, least=5))
    file, size = written(batch(4, b"a", b"b"))
    with pytest.raises(CorruptLog, match="offset 4"):
        list(segments.batches(file, 0, size, below=5))
