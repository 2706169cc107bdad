"""A broker's logs in two directories on a simulated disk, and a replica that moves from one to the other."""

from __future__ import annotations

from random import Random
from uuid import UUID

from headrace.core.ids import TopicPartition
from headrace.log import files
from headrace.log.directory import LogDirectory
from headrace.log.directory_identity import DirectoryIdentity
from headrace.log.manager import LogManager
from headrace.log.moving.future import FutureFolder
from headrace.log.moving.plan import take_plan
from headrace.log.moving.swap import ReplicaSwap
from headrace.log.partition_log import PartitionLog
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, append, topic_config

PARTITION = TopicPartition("t", 0)
TOPIC_ID = UUID(int=5)
PATHS = ("/a", "/b")
CONFIG = topic_config(segment_bytes=400, index_interval_bytes=100)


def open_manager(
    disk: SimulatedDisk, paths: tuple[str, ...] = PATHS, *, lost_nothing: bool = False
) -> LogManager:
    random = Random(disk.generation)
    manager = LogManager(
        disk,
        list(paths),
        DirectoryIdentity("c", 1),
        lambda _: CONFIG,
        new_uuid=lambda: UUID(int=random.getrandbits(128)),
        threads_per_directory=1,
    )
    manager.open_all(NOW, host_stayed_up=lambda _: lost_nothing, expect_folders=True)
    return manager


def new_log(manager: LogManager) -> PartitionLog:
    return manager.create(PARTITION, TOPIC_ID, NOW, directory=manager.directories[0])


def fill(log: PartitionLog, begin: int, end: int) -> None:
    for number in range(begin, end):
        append(log, b"%04d" % number * 10, producer_id=1, producer_epoch=0, base_sequence=number)


def begin(
    manager: LogManager, directory: LogDirectory, partition: TopicPartition = PARTITION
) -> FutureFolder:
    name = manager.unique_name(partition, files.FUTURE_DIRECTORY)
    return FutureFolder(directory, f"{directory.path}/{name}")


def copy_all(log: PartitionLog, future: FutureFolder, most_bytes: int = 300) -> None:
    while future.lacks(plan := take_plan(log)):
        future.copy(plan, most_bytes)


def swap(manager: LogManager, log: PartitionLog, future: FutureFolder) -> bool:
    """As the broker does it, without its threads. Whether the replica has moved."""
    job = ReplicaSwap(manager, log, future, log.end_offset, NOW)
    try:
        job.run()
        if job.switch():
            job.settle()
    finally:
        job.done()
    return job.has_moved


def move(manager: LogManager, log: PartitionLog, directory: LogDirectory) -> bool:
    future = begin(manager, directory)
    copy_all(log, future)
    return swap(manager, log, future)


def folders(disk: SimulatedDisk, *, ending: str = "") -> dict[str, list[str]]:
    """The folders of the partition in each directory."""
    return {
        path: [name for name in disk.list(path) if name.startswith(str(PARTITION)) and name.endswith(ending)]
        for path in PATHS
    }
