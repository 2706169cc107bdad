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
    for job in logs.take_checkpoint({PARTITION: 10, OTHER: 7}):
        job.run()
    logs.delete([PARTITION], NOW)
    assert high_watermarks_of_successor(logs, disk) == {OTHER: 7}


def test_a_checkpoint_that_was_taken_before_a_deletion_does_not_bring_a_high_watermark_back() -> None:
    disk = SimulatedDisk()
    logs = with_ten_records(disk)
    jobs = logs.take_checkpoint({PARTITION: 10, OTHER: 7})
    logs.delete([PARTITION], NOW)
    for job in jobs:
        job.run()
    assert high_watermarks_of_successor(logs, disk) == {OTHER: 7}


# --- log starts that were raised ---


def test_a_raised_log_start_is_durable_with_its_checkpoint() -> None:
    disk = SimulatedDisk()
    logs = with_ten_records(disk)
    log, directory = logs.get(PARTITION), logs.directories[0]
    asked: list[int] = []
    directory.on_raised = lambda: asked.append(log.log_start_offset)
    log.delete_records_before(4)
    assert (asked, list(directory.raised), log.durable_start) == ([4], [log], 0)
    (job,) = logs.take_checkpoint({})
    log.delete_records_before(6)
    job.run()
    assert job.done() == [log]
    assert (log.durable_start, list(directory.raised)) == (4, [log])
    logs.release()
    disk.kill()
    after = manager(disk)
    after.open_all(NOW)
    assert (after.get(PARTITION).log_start_offset, after.get(PARTITION).durable_start) == (4, 4)


def test_a_checkpoint_from_before_a_cut_makes_nothing_durable() -> None:
    logs = with_ten_records(SimulatedDisk())
    log = logs.get(PARTITION)
    log.delete_records_before(8)
    (job,) = logs.take_checkpoint({})
    log.truncate_fully_and_start_at(2)
    append(log, *[b"c"] * 10)
    log.delete_records_before(9)
    job.run()
    assert job.done() == []
    assert (log.durable_start, list(log.directory.raised)) == (2, [log])
    (job,) = logs.take_checkpoint({})
    job.run()
    assert job.done() == [log]
    assert (log.durable_start, list(log.directory.raised)) == (9, [])


def test_segments_that_are_gone_need_no_checkpoint() -> None:
    logs = with_ten_records(SimulatedDisk())
    log = logs.get(PARTITION)
    log.roll(NOW)
    append(log, b"d")
    log.delete_records_before(10)
    assert log.durable_start == 0
    log.enforce_retention(NOW, 11)
    assert log.durable_start == 10


def test_a_log_that_is_deleted_waits_for_no_checkpoint() -> None:
    logs = with_ten_records(SimulatedDisk())
    logs.get(PARTITION).delete_records_before(4)
    logs.delete([PARTITION], NOW)
    assert not logs.directories[0].raised
