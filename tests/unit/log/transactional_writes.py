"""Transactional batches and markers, as producers and coordinators would have them written."""

from __future__ import annotations

from headrace.log.partition_log import AppendResult, PartitionLog
from headrace.protocol.batch import check
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import encode_batch
from tests.unit.log.material import NOW, append


def verify(
    log: PartitionLog, producer: int, *, epoch: int = 0, sequence: int = 0, raises_epochs: bool = False
) -> None:
    """As if the coordinator had said that the partition is in the producer's transaction."""
    asked = log.producers.begin_verification(
        producer, epoch, sequence, raises_epochs=raises_epochs, now_ms=NOW
    )
    assert asked is None or log.producers.end_verification(producer, asked)


def write(
    log: PartitionLog,
    producer: int,
    sequence: int,
    *values: bytes,
    epoch: int = 0,
    verified: bool = True,
    leader_epoch: int = 0,
) -> AppendResult:
    """A batch of a transaction, verified before if need be."""
    if verified:
        verify(log, producer, epoch=epoch, sequence=sequence)
    return append(
        log,
        *(values or (b"value",)),
        leader_epoch=max(log.latest_epoch, leader_epoch),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )


def marker(producer: int, epoch: int, *, commit: bool, coordinator_epoch: int = 3) -> bytearray:
    return encode_batch(
        [end_marker(commit=commit, coordinator_epoch=coordinator_epoch, timestamp=NOW)],
        producer_id=producer,
        producer_epoch=epoch,
        transactional=True,
        control=True,
    )


def end(
    log: PartitionLog,
    producer: int,
    *,
    commit: bool,
    epoch: int = 0,
    coordinator_epoch: int = 3,
    version: int = 0,
) -> AppendResult:
    """The marker, if it may be written."""
    log.producers.check_marker(producer, epoch, coordinator_epoch, version)
    batch = marker(producer, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    return log.append_as_leader(
        batch, check(batch), leader_epoch=max(log.latest_epoch, 0), now_ms=NOW, from_client=False
    )
