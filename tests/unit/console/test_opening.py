"""Batches of strangers: a few bytes that claim to be millions of records, and what is broken inside."""

from __future__ import annotations

import pytest

from headrace.client.consumer import Fetched, RawBatches
from headrace.console.records import opening
from headrace.console.records.opening import MOST_RECORDS, batches_from
from headrace.core.ids import TopicPartition
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord, encode_batch
from tests.sealed_batches import sealed

EMPTY = b"\x0c\0\0\0\x01\x01\0"
"""A record of seven bytes: neither key nor value."""


def fetched(data: bytes | bytearray, offset: int = 0) -> Fetched:
    return Fetched(TopicPartition("t", 0), [], offset, 0, RawBatches(offset, bytes(data), []))


def test_records_come_from_the_offset_on() -> None:
    data = b"".join(
        encode_batch([NewRecord(b"%d" % at) for at in range(5)], base_offset=5 * number, compression=codec)
        for number, codec in enumerate((Compression.NONE, Compression.ZSTD, Compression.GZIP))
    )
    found = list(batches_from(fetched(data, offset=7)))
    assert [each.next_offset for each in found] == [10, 15]
    assert [record.offset for each in found for record in each.records()] == list(range(7, 15))
    assert [each.left_out for each in found] == [0, 0]


def test_a_batch_of_very_many_records_is_left_out_and_counted() -> None:
    count = MOST_RECORDS + 1
    (batch,) = batches_from(fetched(sealed(EMPTY, count)))
    assert list(batch.records()) == []
    assert (batch.left_out, batch.next_offset) == (count, count)


def test_a_batch_that_expands_without_end_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MOST_BYTES", 1_000_000)
    data = encode_batch([NewRecord(b"\0" * 2_000_000)], compression=Compression.ZSTD)
    assert len(data) < 1000
    (batch,) = batches_from(fetched(data))
    assert list(batch.records()) == []
    assert (batch.left_out, batch.next_offset) == (1, 1)


def test_what_is_whole_before_the_fault_is_shown() -> None:
    (batch,) = batches_from(fetched(sealed(EMPTY + b"\xff" * 20, 3)))
    assert len(list(batch.records())) == 1
    assert batch.left_out == 2
