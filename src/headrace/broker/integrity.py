"""Finds damage in data that was good once, and takes a damaged replica out of service.

A bit that flips on a disk is noticed when the range is read from it: the thread that brings a cold range into
memory checks it on the way. It is also noticed when a follower asks for the same records again and again,
because it refuses what it gets. Either way the range is read once more before anything is believed.

A damaged replica never leads and deletes nothing. If another broker leads the partition, the files are set
aside and everything is fetched anew. If nobody else can, the partition stays offline with its files as they
are, for a person to look at.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from headrace.broker.replicas.directory_choices import LOST
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import CorruptLog, HeadraceError, StorageError
from headrace.core.ids import NO_BROKER, TopicPartition
from headrace.core.ports import FileRange
from headrace.log.scan import verify_range

if TYPE_CHECKING:
    from headrace.broker.broker import Broker
    from headrace.replication.partition import Partition

CHECKED_BYTES: Final = 8 * 1024 * 1024


def verify(part: FileRange) -> None:
    """Raises CorruptLog. For a thread."""
    verify_range(part.file, part.position, part.length)


class Integrity:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._checking: dict[TopicPartition, None] = {}

    def watch(self, network: Any) -> None:
        """Check what is read from the disk. A simulated network has no page cache: nothing is cold there."""
        page_cache = getattr(network, "page_cache", None)
        if page_cache is not None:
            page_cache.verify = verify
            page_cache.on_damage = self._on_cold_damage

    def _on_cold_damage(self, part: FileRange) -> None:
        for partition in self._broker.partitions:
            if any(segment.open_file is part.file for segment in partition.log.segments):
                try:
                    offset = int.from_bytes(part.file.pread(8, part.position), "big")
                except OSError as error:
                    partition.log.directory.fail(error, f"read {partition.topic_partition}")
                    return
                self.doubt(partition, max(offset, partition.log.log_start_offset))
                return

    def doubt(self, partition: Partition, offset: int) -> None:
        """Somebody could not use what is at `offset`: look."""
        name = partition.topic_partition
        if name in self._checking or not partition.log.log_start_offset <= offset < partition.log.end_offset:
            return
        self._checking[name] = None
        task = asyncio.ensure_future(self._check(partition, offset))
        task.add_done_callback(lambda _: self._checking.pop(name, None))

    async def _check(self, partition: Partition, offset: int) -> None:
        broker, log = self._broker, partition.log
        truncations = log.truncations
        try:
            part = log.read(offset, CHECKED_BYTES, limit=log.end_offset, min_one=True)
            await broker.loop.run_in_executor(None, verify, part)
        except CorruptLog as error:
            if not log.closed and log.truncations == truncations:
                self._give_up(partition, error)
        except OSError as error:
            # Not damaged but not to be had: as with every other error of a disk, all of it is out of use.
            if not log.closed:
                log.directory.fail(error, f"read {log.topic_partition}")
        except HeadraceError as error:
            broker.log.warning(
                "a range could not be checked", partition=str(log.topic_partition), error=str(error)
            )

    def _give_up(self, partition: Partition, error: CorruptLog) -> None:
        broker, name = self._broker, partition.topic_partition
        broker.log.error("partition quarantined", partition=str(name), error=str(error))
        partition.resign()
        broker.replicas.unfollow(partition)
        broker.partitions.remove(name)
        broker.logs.quarantine(name, error)
        topic = broker.image.topic_by_id(partition.topic_id)
        if topic is not None:
            broker.hosting.host(topic, [name.partition])

    def may_begin_anew(self, topic: TopicImage, index: int) -> bool:
        """Whether a quarantined replica may be set aside: somebody else leads, and has what is committed.

        Otherwise the controller is told that this one is lost, so that it looks for another leader.
        """
        broker, name = self._broker, TopicPartition(topic.name, index)
        if broker.alone:
            return False
        broker.replicas.directories.declare(topic.topic_id, index, LOST)
        leader = topic.leaders[index]
        if leader in (NO_BROKER, broker.broker_id) or broker.broker_id in topic.isr(index):
            return False
        if topic.directory_of(index, broker.broker_id) != LOST:
            return False  # not before the controller knows: it must not count on the empty log
        try:
            path = broker.logs.set_quarantined_aside(name)
        except StorageError as error:
            broker.log.error("a quarantined partition stays", partition=str(name), error=str(error))
            return False
        broker.log.warning("quarantined partition is fetched anew", partition=str(name), old_files=path)
        return True
