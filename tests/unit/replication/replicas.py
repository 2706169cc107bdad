"""Partitions, rows and fetched answers for the tests of replication."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headrace.core.errors import HeadraceError
from headrace.core.ports import Disk
from headrace.log.claims_file import FirstBatch
from headrace.log.truncation import TruncationJob, lower_together
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.assignment import Assignment
from headrace.replication.following import FetchOutcome, FetchPosition
from headrace.replication.partition import Partition
from headrace.replication.safeguards import ALL_ON, Safeguards
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, PARTITION, batch_of, open_at, topic_config, whole_batches

TOPIC_ID = UUID(int=3)
LOCAL = 1
BROKER_EPOCH = 100
"""Of every broker, where a test does not say otherwise."""


def new_partition(
    disk: Disk | None = None,
    root: str = "/data",
    *,
    safeguards: Safeguards = ALL_ON,
    high_watermark: int | None = None,
    first_batch: FirstBatch | None = None,
    **settings: Any,
) -> Partition:
    log = open_at(disk or SimulatedDisk(), root, config=topic_config(**settings), first_batch=first_batch)
    return Partition(
        PARTITION, TOPIC_ID, log, TopicMetrics(), safeguards=safeguards, high_watermark=high_watermark
    )


def row(
    leader: int,
    leader_epoch: int,
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    replicas: tuple[int, ...] = (1, 2, 3),
    version: int | None = None,
) -> Assignment:
    """`version`: the partition epoch; by default one that is higher in every leader epoch."""
    return Assignment(leader, leader_epoch, leader_epoch * 10 if version is None else version, replicas, isr)


def append(partition: Partition, *values: bytes, acks: int = 1, **fields: Any) -> int:
    batch, header = batch_of(*values, **fields)
    return partition.append(batch, header, acks=acks, now_ms=NOW).base_offset


def fetch(
    leader: Partition, replica_id: int, offset: int, now: float = 0.0, epoch: int = BROKER_EPOCH
) -> None:
    """What a leader does with a follower's fetch, as far as the follower's progress goes."""
    leader.check_replica(leader.leader_epoch)
    leader.on_replica_fetch(replica_id, epoch, offset, now)


def registered(_: int) -> int | None:
    return BROKER_EPOCH


def visible(partition: Partition, offset: int = 0) -> int:
    """How many records a consumer that asks from `offset` on can see."""
    found = partition.read(offset, 1 << 20)
    if not found.length:
        return 0
    batches = whole_batches(found.file.pread(found.length, found.position))
    return sum(len(records) for _, records in batches)


def answer(
    leader: Partition | None = None,
    offset: int = 0,
    *,
    error: int = 0,
    diverging: tuple[int, int] | None = None,
    high_watermark: int = -1,
    log_start: int = -1,
    records: bytes = b"",
) -> FetchedPartitionData:
    """What a leader would answer to a replica that asks from `offset` on, or exactly these values."""
    if leader is not None:
        found = leader.read_as_replica(offset, 1 << 20)
        records = found.file.pread(found.length, found.position)
        high_watermark, log_start = leader.high_watermark, leader.log.log_start_offset
    return FetchedPartitionData(0, error, high_watermark, log_start, memoryview(records), diverging)


def fetched(
    follower: Partition, sent: FetchPosition, data: FetchedPartitionData, now: float = 0.0
) -> FetchOutcome:
    """Take an answer. A truncation that it asks for is run at once, as if there were time for it."""
    outcome = follower.on_fetched(sent, data, NOW)
    if outcome == FetchOutcome.TRUNCATING:
        finish_truncation(follower, now)
    return outcome


def finish_truncation(follower: Partition, now: float = 0.0) -> None:
    job = follower.log.truncation
    assert isinstance(job, TruncationJob)
    try:
        lower_together(follower.log.directory, [job])
        job.run()
    finally:
        follower.on_truncated(now, NOW)


def copy(leader: Partition, follower: Partition, now: float = 0.0) -> FetchOutcome:
    """One whole exchange between a leader and a follower, as broker 2."""
    sent = follower.fetch_position()
    assert sent is not None
    leader.check_replica(sent.current_leader_epoch)
    if sent.last_fetched_epoch >= 0:
        diverging = leader.diverging(sent.last_fetched_epoch, sent.fetch_offset)
        if diverging is not None:
            return fetched(follower, sent, answer(diverging=diverging), now)
    leader.on_replica_fetch(2, BROKER_EPOCH, sent.fetch_offset, now)
    return fetched(follower, sent, answer(leader, sent.fetch_offset), now)


class Listener:
    """Somebody who wants to read more."""

    def __init__(self) -> None:
        self.appended: list[int] = []
        self.committed: list[int] = []
        self.changes = 0

    def on_append(self, size: int) -> None:
        self.appended.append(size)

    def on_commit(self, size: int) -> None:
        self.committed.append(size)

    def on_change(self) -> None:
        self.changes += 1

    def on_step_back(self) -> None:
        raise AssertionError("nobody who reads here is a replica")


class Producer:
    """Somebody who waits for acknowledgements."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []

    def on_decided(self, token: int, error: HeadraceError | None) -> None:
        self.told.append((token, "ok" if error is None else type(error).__name__))
