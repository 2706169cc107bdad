"""What the checkpoints of a directory say of a partition whose name was another one's before."""

from __future__ import annotations

from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, append, topic_config

PARTITION, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def manager(disk: SimulatedDisk) -> LogManager:
    return LogManager(
        disk,
        ["/data"],
        DirectoryIdentity("c", 1),
        lambda _: topic_config(),
        new_uuid=lambda: UUID(int=disk.random.getrandbits(128)),
    )


def with_ten_records(disk: SimulatedDisk) -> LogManager:
    logs = manager(disk)
    for partition in (PARTITION, OTHER):
        log = logs.create(partition, UUID(int=1), NOW)
        append(log, *[b"a"] * 10)
        log.flush()
    return logs


def high_watermarks_of_successor(logs: LogManager, disk: SimulatedDisk) -> dict[TopicPartition, int]:
    """What a start finds after a partition of the same name got records, none of them committed."""
    log = logs.create(PARTITION, UUID(int=2), NOW)
    append(log, *[b"b"] * 20)
    logs.release()
    disk.kill()
    return manager(disk).open_all(NOW)


def test_a_recreated_partition_does_not_inherit_a_high_watermark() -> None:
    disk = SimulatedDisk()
    logs = with_ten_records(disk)
    for ticket in logs.take_checkpoint({PARTITION: 10, OTHER: 7}):
        ticket.run()
    logs.delete([PARTITION], NOW)
    assert high_watermarks_of_successor(logs, disk) == {OTHER: 7}


def test_a_checkpoint_that_was_taken_before_a_deletion_does_not_bring_a_high_watermark_back() -> None:
    disk = SimulatedDisk()
    logs = with_ten_records(disk)
    tickets = logs.take_checkpoint({PARTITION: 10, OTHER: 7})
    logs.delete([PARTITION], NOW)
    for ticket in tickets:
        ticket.run()
    assert high_watermarks_of_successor(logs, disk) == {OTHER: 7}
