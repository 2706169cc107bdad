"""A disk fails under the logs: one directory goes offline, the others serve, nothing is tried twice."""

from __future__ import annotations

import errno
from random import Random
from uuid import UUID

import pytest

from headrace.core.errors import DiskFull, StorageError
from headrace.core.ids import TopicPartition
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.testing.disk import Fault, SimulatedDisk
from tests.unit.log.material import NOW, append, batch_of, read_records, topic_config, values_of

GOOD, BAD = TopicPartition("good", 0), TopicPartition("bad", 0)
CONFIG = topic_config(segment_bytes=400, index_interval_bytes=100)


class Broker:
    """Two directories, one partition in each."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.failed: list[str] = []
        random = Random(1)
        self.logs = LogManager(
            disk,
            ["/a", "/b"],
            DirectoryIdentity("c", 1),
            lambda _: CONFIG,
            new_uuid=lambda: UUID(int=random.getrandbits(128)),
            on_failure=lambda directory, _: self.failed.append(directory.path),
        )
        self.logs.open_all(NOW)
        if GOOD not in self.logs.logs and not self.failed:
            self.logs.create(BAD, UUID(int=1), NOW)
            self.logs.create(GOOD, UUID(int=2), NOW)
            for partition in (BAD, GOOD):
                append(self.logs.get(partition), b"first")
                self.logs.get(partition).flush()

    def break_disk(self, operation: str, error: int) -> None:
        self.disk.faults.append(Fault(operation, "/a", error))

    def only_one_failed(self) -> None:
        assert self.failed == ["/a"]
        with pytest.raises(StorageError, match="/a is offline"):
            self.logs.get(BAD)
        append(self.logs.get(GOOD), b"second")
        assert values_of(read_records(self.logs.get(GOOD)))[-1] == b"second"


@pytest.fixture
def broker() -> Broker:
    return Broker(SimulatedDisk())


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS, errno.EACCES])
def test_a_failed_append_takes_its_directory_offline(broker: Broker, error: int) -> None:
    log = broker.logs.get(BAD)
    broker.break_disk("pwrite", error)
    with pytest.raises(StorageError, match="append to bad-0"):
        append(log, b"lost")
    broker.disk.faults.clear()
    with pytest.raises(StorageError):
        log.read(0, 1 << 20, limit=log.end_offset, min_one=True)
    with pytest.raises(StorageError):
        log.read(log.end_offset, 1 << 20, limit=log.end_offset, min_one=True)
    with pytest.raises(StorageError):
        append(log, b"again")
    assert log.end_offset == 1
    broker.only_one_failed()


def test_fault_04_a_torn_batch_is_cut_off_by_recovery(broker: Broker) -> None:
    broker.disk.free = 40
    broker.break_disk("truncate", errno.EIO)
    with pytest.raises(StorageError, match="append to bad-0"):
        append(broker.logs.get(BAD), b"x" * 100)
    broker.disk.faults.clear()
    broker.disk.free = 1 << 40
    broker.only_one_failed()
    broker.logs.release()
    broker.disk.kill()
    again = Broker(broker.disk)
    assert values_of(read_records(again.logs.get(BAD))) == [b"first"]
    assert append(again.logs.get(BAD), b"fits").base_offset == 1


@pytest.mark.parametrize("room", [0, 40])
def test_fault_35_a_full_disk_refuses_an_append_and_takes_the_next_one(broker: Broker, room: int) -> None:
    log = broker.logs.get(BAD)
    broker.disk.free = room
    for _ in range(2):
        with pytest.raises(DiskFull, match="free space on it"):
            append(log, b"x" * 100)
    batch, _ = batch_of(b"from a leader" * 10)
    batch[:8] = (1).to_bytes(8, "big")
    batch[12:16] = bytes(4)  # of leader epoch 0
    with pytest.raises(DiskFull):
        log.append_as_follower(batch, now_ms=NOW)
    assert log.end_offset == 1
    assert log.directory.is_online
    broker.disk.free = 1 << 40
    assert append(log, b"fits").base_offset == 1
    assert values_of(read_records(log)) == [b"first", b"fits"]
    log.flush()
    broker.logs.release()
    broker.disk.crash(keep=0.0)
    again = Broker(broker.disk)
    assert values_of(read_records(again.logs.get(BAD))) == [b"first", b"fits"]


def test_fault_35_a_segment_that_cannot_be_sealed_on_a_full_disk_is_sealed_later(broker: Broker) -> None:
    log = broker.logs.get(BAD)
    log.update_config(topic_config(segment_bytes=200))
    append(log, b"x" * 100)
    broker.disk.free = 0
    for _ in range(3):
        with pytest.raises(DiskFull, match="roll bad-0"):
            append(log, b"y" * 100)
    broker.disk.free = 1 << 40
    append(log, b"y" * 100)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert values_of(read_records(log)) == [b"first", b"x" * 100, b"y" * 100]


def test_fault_35_checkpoints_wait_for_room(broker: Broker) -> None:
    log = broker.logs.get(BAD)
    append(log, b"second")
    log.flush()
    log.delete_records_before(1)
    broker.disk.free = 0
    refused = 0
    for job in broker.logs.take_checkpoint({}):
        try:
            job.run()
        except DiskFull:
            refused += 1
            job.failed()
    assert refused
    assert log.directory.is_online
    broker.disk.free = 1 << 40
    for job in broker.logs.take_checkpoint({}):
        job.run()
        job.done()
    assert log.durable_start == 1


def test_an_error_of_fsync_is_never_tried_again(broker: Broker) -> None:
    log = broker.logs.get(BAD)
    append(log, b"not durable")
    job = log.take_flush()
    assert job is not None
    broker.break_disk("sync", errno.EIO)
    with pytest.raises(StorageError, match="replace the disk"):
        job.run()
    job.failed()
    broker.disk.faults.clear()
    assert log.recovery_point == 1
    with pytest.raises(StorageError):
        log.take_flush()
    with pytest.raises(StorageError):
        log.flush()
    assert log.recovery_point == 1
    broker.only_one_failed()


@pytest.mark.parametrize("operation", ["open", "pread"])
def test_a_failed_read_takes_its_directory_offline(broker: Broker, operation: str) -> None:
    log = broker.logs.get(BAD)
    for _ in range(10):
        append(log, b"x")
    for segment in log.segments:
        segment.release()
    broker.break_disk(operation, errno.EIO)
    with pytest.raises(StorageError, match="read bad-0"):
        log.read(0, 10, limit=log.end_offset, min_one=True)
    broker.only_one_failed()


@pytest.mark.parametrize("operation", ["rename", "open", "sync"])
def test_a_failed_checkpoint_takes_its_directory_offline(broker: Broker, operation: str) -> None:
    jobs = broker.logs.take_checkpoint({})
    broker.break_disk(operation, errno.EIO)
    with pytest.raises(StorageError):
        jobs[0].run()
    jobs[1].run()
    broker.only_one_failed()


def test_a_new_partition_goes_to_a_directory_that_works(broker: Broker) -> None:
    broker.break_disk("make_dirs", errno.EROFS)
    with pytest.raises(StorageError, match="mount it writable"):
        broker.logs.create(TopicPartition("new", 0), UUID(int=3), NOW)
    assert broker.logs.create(TopicPartition("new", 0), UUID(int=3), NOW).directory.path == "/b"


def test_a_directory_that_cannot_be_read_at_the_start_is_offline(broker: Broker) -> None:
    broker.logs.shut_down(5)
    broker.break_disk("open", errno.EIO)
    again = Broker(broker.disk)
    assert again.failed == ["/a"]
    assert again.logs.broker_epoch_at_stop == 5
    append(again.logs.get(GOOD), b"serves")


def test_a_clean_stop_is_not_claimed_for_a_directory_that_failed(broker: Broker) -> None:
    broker.break_disk("sync", errno.EIO)
    broker.logs.shut_down(5)
    assert not broker.disk.exists("/a/.kafka_cleanshutdown")
    assert broker.disk.exists("/b/.kafka_cleanshutdown")


def test_damage_to_one_partition_leaves_its_neighbours(broker: Broker) -> None:
    other = broker.logs.create(
        TopicPartition("neighbour", 0), UUID(int=4), NOW, directory=broker.logs.get(BAD).directory
    )
    append(other, b"fine")
    other.flush()
    for job in broker.logs.take_checkpoint({}):
        job.run()
    broker.logs.release()
    broker.disk.kill()
    broker.disk.flip(f"/a/{BAD}/{0:020d}.log", 8 * 65)
    again = Broker(broker.disk)
    assert list(again.logs.quarantined) == [BAD]
    with pytest.raises(StorageError, match="restore them from a replica or a backup"):
        again.logs.get(BAD)
    assert values_of(read_records(again.logs.get(TopicPartition("neighbour", 0)))) == [b"fine"]
    assert not again.failed
