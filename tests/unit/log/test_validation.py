"""What a topic's configuration demands of a batch, and that nothing of a refused batch is stored."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from headrace.core import errors
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import HEADER_SIZE, check, reseal
from headrace.protocol.compression import Compression
from headrace.protocol.records import NewRecord, decode_records, encode_batch
from tests.unit.log.material import (
    NOW,
    append,
    batch_of,
    open_at,
    read_bytes,
    read_records,
    topic_config,
    whole_batches,
)


def log_with(tmp_path: Path, **settings: Any) -> PartitionLog:
    return open_at(OsDisk(), str(tmp_path), config=topic_config(**settings))


@pytest.mark.parametrize(
    ("settings", "fields", "error"),
    [
        ({"max_message_bytes": 70}, {}, errors.MessageTooLarge),
        ({"segment_bytes": 70}, {}, errors.BatchLargerThanSegment),
        ({}, {"control": True}, errors.InvalidRecord),
        ({}, {"log_append_time": True}, errors.InvalidTimestamp),
        ({}, {"producer_id": 1, "producer_epoch": 0}, errors.InvalidRecord),
        ({}, {"producer_id": 1, "base_sequence": 0}, errors.InvalidRecord),
        ({"cleanup_policy": frozenset({"compact"})}, {}, errors.InvalidRecord),
        ({"message_timestamp_after_max_ms": 10}, {"timestamp": NOW + 11}, errors.InvalidTimestamp),
        ({"message_timestamp_before_max_ms": 10}, {"timestamp": NOW - 11}, errors.InvalidTimestamp),
    ],
)
def test_what_is_refused_is_not_stored(
    tmp_path: Path, settings: dict[str, Any], fields: dict[str, Any], error: type[Exception]
) -> None:
    log = log_with(tmp_path, **settings)
    with pytest.raises(error):
        append(log, b"0123456789", **fields)
    assert (log.end_offset, log.size_bytes) == (0, 0)


def test_bounds_are_inclusive(tmp_path: Path) -> None:
    batch, _ = batch_of(b"x")
    log = log_with(
        tmp_path,
        max_message_bytes=len(batch),
        message_timestamp_after_max_ms=10,
        message_timestamp_before_max_ms=10,
    )
    append(log, b"x", timestamp=NOW + 10)
    append(log, b"x", timestamp=NOW - 10)
    append(log, b"x", timestamp=-1)


def test_counts_must_agree(tmp_path: Path) -> None:
    log = log_with(tmp_path)
    batch, _ = batch_of(b"a", b"b")
    batch[57:61] = (1).to_bytes(4, "big")
    reseal(batch, 0, len(batch))
    with pytest.raises(errors.InvalidRecord, match="1 records with last offset delta 1"):
        log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)


def test_an_unknown_codec_is_refused(tmp_path: Path) -> None:
    log = log_with(tmp_path)
    batch, _ = batch_of(b"a")
    batch[22] |= 5
    reseal(batch, 0, len(batch))
    with pytest.raises(errors.InvalidRecord, match="unknown compression"):
        log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)


def test_log_append_time_replaces_every_timestamp(tmp_path: Path) -> None:
    log = log_with(tmp_path, message_timestamp_type="LogAppendTime")
    result = append(log, b"a", b"b", timestamp=5, now_ms=NOW + 3)
    assert result.append_time_ms == NOW + 3
    assert {record.timestamp for record in read_records(log)} == {NOW + 3}
    found = log.offset_for_timestamp(NOW + 1, log.end_offset)
    assert found is not None
    assert (found.offset, found.timestamp) == (0, NOW + 3)


def test_a_compacted_topic_takes_records_with_keys(tmp_path: Path) -> None:
    log = log_with(tmp_path, cleanup_policy=frozenset({"compact", "delete"}))
    batch = encode_batch([NewRecord(b"v", b"k", NOW)], compression=Compression.LZ4)
    log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)
    mixed = encode_batch([NewRecord(b"v", b"k", NOW), NewRecord(b"v", None, NOW)])
    with pytest.raises(errors.InvalidRecord, match="without a key"):
        log.append_as_leader(mixed, check(mixed), leader_epoch=0, now_ms=NOW)
    assert log.end_offset == 1


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("sent", list(Compression))
def test_batches_are_recompressed_where_the_topic_asks(
    tmp_path: Path, sent: Compression, wanted: str
) -> None:
    log = log_with(tmp_path, compression_type=wanted)
    append(log, b"a" * 100, b"b", compression=sent, producer_id=3, producer_epoch=1, base_sequence=0)
    ((header, inside),) = whole_batches(read_bytes(log, 0))
    assert Compression(header.compression).name.lower() == ("none" if wanted == "uncompressed" else wanted)
    assert [record.value for record in inside] == [b"a" * 100, b"b"]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 0)
    assert (header.base_offset, header.leader_epoch) == (0, 0)
    assert append(
        log, b"a" * 100, b"b", compression=sent, producer_id=3, producer_epoch=1, base_sequence=0
    ).duplicate


@pytest.mark.parametrize("length", [99_000, 200_000, 30_000_000])
@pytest.mark.parametrize("wanted", ["uncompressed", "snappy"])
def test_a_batch_is_within_its_limit_after_recompression_too(
    tmp_path: Path, wanted: str, length: int
) -> None:
    """As in Kafka, whose clients split a batch that is too large, but give one up that is invalid."""
    log = log_with(tmp_path, compression_type=wanted, max_message_bytes=100_000)
    batch, header = batch_of(b"a" * length, compression=Compression.ZSTD)
    assert header.size < 2000
    fits = length < 100_000 or (wanted == "snappy" and length < 1_000_000)
    with nullcontext() if fits else pytest.raises(errors.MessageTooLarge):
        log.append_as_leader(batch, header, leader_epoch=0, now_ms=NOW)
    assert log.end_offset == fits
    assert log.size_bytes <= 100_000


def test_records_that_cannot_be_opened_are_the_clients_fault(tmp_path: Path) -> None:
    batch = encode_batch([NewRecord(b"v" * 100, b"k", NOW)], compression=Compression.GZIP)
    batch[HEADER_SIZE + 10 : HEADER_SIZE + 20] = b"?" * 10
    reseal(batch, 0, len(batch))
    for settings in ({"cleanup_policy": frozenset({"compact"})}, {"compression_type": "zstd"}):
        log = log_with(tmp_path / str(len(settings)) / next(iter(settings)), **settings)
        with pytest.raises(errors.InvalidRecord, match="cannot be read"):
            log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)
        assert log.end_offset == 0


def test_a_plain_topic_never_decompresses_a_batch(tmp_path: Path) -> None:
    """What begins like gzip is stored as it is, and a look-up by time answers from the header."""
    log = log_with(tmp_path)
    append(log, b"before", timestamp=NOW)
    batch = encode_batch([NewRecord(b"v" * 100, b"k", NOW + 10)] * 2, compression=Compression.GZIP)
    batch[HEADER_SIZE + 10 :] = b"?" * (len(batch) - HEADER_SIZE - 10)
    reseal(batch, 0, len(batch))
    log.append_as_leader(batch, check(batch), leader_epoch=0, now_ms=NOW)
    append(log, b"after", timestamp=NOW + 5)
    with pytest.raises(errors.ClientError):
        list(decode_records(batch))
    found = log.offset_for_timestamp(NOW + 1, log.end_offset)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, NOW + 10)
    largest = log.max_timestamp_offset(log.end_offset)
    assert largest is not None
    assert (largest.offset, largest.timestamp) == (1, NOW + 10)


def test_new_settings_hold_from_then_on(tmp_path: Path) -> None:
    log = log_with(tmp_path)
    append(log, b"0123456789")
    log.update_config(topic_config(max_message_bytes=70))
    with pytest.raises(errors.MessageTooLarge):
        append(log, b"0123456789")


def test_an_older_leader_epoch_is_fenced(tmp_path: Path) -> None:
    log = log_with(tmp_path)
    append(log, b"a", leader_epoch=4)
    with pytest.raises(errors.FencedLeaderEpoch):
        append(log, b"b", leader_epoch=3)
    assert log.end_offset == 1
