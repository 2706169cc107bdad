"""Writes a partition with a bit of everything, for tests that read the files with other tools."""

from __future__ import annotations

from typing import Any

from headrace.core.ids import TopicPartition
from headrace.log.os_disk import OsDisk
from headrace.log.partition_log import PartitionLog
from headrace.protocol.batch import check
from headrace.protocol.compression import Compression
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import encode_batch
from tests.unit.log.material import NOW, open_at, records, topic_config

PARTITION = TopicPartition("written", 0)


def write_partition(root: str, *, batches: int = 400, segment_bytes: int = 40_000) -> PartitionLog:
    """Several segments, every codec, plain and idempotent producers, transactions, two leader epochs.

    Returns the log after a clean close; its folder is `<root>/written-0`.
    """
    config = topic_config(segment_bytes=segment_bytes, index_interval_bytes=1000)
    log = open_at(OsDisk(), root, config=config, partition=PARTITION)
    sequences = dict.fromkeys(range(1, 4), 0)
    for number in range(batches):
        values = [b"%d" % number * (number % 50 + 1)] * (number % 4 + 1)
        when = NOW + (number * 7919) % 1000 * 60 + number
        producer = number % 5
        fields: dict[str, Any] = {"compression": Compression(number % 5)}
        if producer in sequences:
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences[producer]}
            sequences[producer] += len(values)
        batch = encode_batch(records(*values, timestamp=when), **fields)
        log.append_as_leader(batch, check(batch), leader_epoch=number // 200, now_ms=NOW + number)
    write_transaction(log, producer_id=9, sequence=0, commit=True)
    write_transaction(log, producer_id=9, sequence=1, commit=False)
    log.close()
    return log


def verify(log: PartitionLog, producer_id: int, *, epoch: int = 0, sequence: int = 0) -> None:
    """As if the coordinator had said that the partition is in the producer's transaction."""
    asked = log.producers.begin_verification(producer_id, epoch, sequence, raises_epochs=False, now_ms=NOW)
    assert asked is None or log.producers.end_verification(producer_id, asked)


def write_transaction(log: PartitionLog, *, producer_id: int, sequence: int, commit: bool) -> None:
    verify(log, producer_id, sequence=sequence)
    data = encode_batch(
        records(b"in a transaction", timestamp=NOW),
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    log.append_as_leader(data, check(data), leader_epoch=max(log.latest_epoch, 1), now_ms=NOW)
    marker = encode_batch(
        [end_marker(commit=commit, coordinator_epoch=3, timestamp=NOW)],
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    log.append_as_leader(
        marker, check(marker), leader_epoch=max(log.latest_epoch, 1), now_ms=NOW, from_client=False
    )
