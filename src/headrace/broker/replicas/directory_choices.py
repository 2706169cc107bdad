"""Tells the controller in which log directory each replica is (KIP-858): AssignReplicasToDirs, batched.

The controller has to know it, or the death of a directory would not tell it which replicas are gone. A broker
with one directory has no choice to tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.replicas.host import ReplicaHost
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from headrace.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

LOST: Final = UUID(int=1)
"""Kafka's id for "in no directory that works": the controller neither elects nor admits such a replica."""
MOST_AT_ONCE: Final = 2000
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0

Replica = tuple[UUID, int]


class DirectoryChoices:
    def __init__(self, host: ReplicaHost) -> None:
        self._host = host
        self._wanted: dict[Replica, UUID] = {}
        """Where replicas are, of which the metadata says something else."""
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = spawn("directory choices", self._run(), self._host.runtime.loop)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    def consider(self, partition: Partition) -> None:
        """Called after each row of a hosted partition; nothing happens where the metadata is right."""
        if self._task is None:
            return  # it is alone
        replica = (partition.topic_id, partition.topic_partition.partition)
        directory = partition.log.directory.uuid
        if self._is_known(replica, directory):
            self._wanted.pop(replica, None)
        else:
            self._want(replica, directory)

    def declare(self, topic_id: UUID, index: int, directory: UUID) -> None:
        """Say that a replica is somewhere else than its log: nowhere, if it is lost."""
        replica = (topic_id, index)
        if self._task is not None and not self._is_known(replica, directory):
            self._want(replica, directory)

    def _want(self, replica: Replica, directory: UUID) -> None:
        self._wanted[replica] = directory
        self._wake.set()

    def _is_known(self, replica: Replica, directory: UUID) -> bool:
        """Also if there is nothing to tell: the topic is gone, or this broker holds none of it any more."""
        topic = self._host.metadata.image.topic_by_id(replica[0])
        if topic is None or replica[1] not in topic:
            return True
        if self._host.runtime.broker_id not in topic.replicas(replica[1]):
            return True
        known = topic.directory_of(replica[1], self._host.runtime.broker_id)
        if known == UNASSIGNED_DIRECTORY and len(self._host.runtime.config.data_directories) < 2:
            return directory != LOST  # it has no choice
        return known == directory

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            if not self._wanted:
                self._wake.clear()
                await self._wake.wait()
                await asyncio.sleep(0)  # what the same change of the metadata brings goes together
            told = list(self._wanted.items())[:MOST_AT_ONCE]
            try:
                answer = await self._host.channel.request(self._request(told), AssignReplicasToDirsResponse)
                refused = answer.error_code
            except HeadraceError as error:
                self._host.runtime.log.info("directory assignment not reported", error=str(error))
                refused = -1
            except Exception as error:  # a mistake of ours must not end all tellings
                self._host.runtime.log.error("directory assignment failed", error=repr(error), exc_info=error)
                refused = -1
            self._drop_settled(told if not refused else ())
            pause = FIRST_PAUSE if not refused else min(2 * pause, LONGEST_PAUSE)
            if refused:
                await asyncio.sleep(pause)

    def _drop_settled(self, told: Iterable[tuple[Replica, UUID]]) -> None:
        """What was told need not be told again, whatever single refusals there were: a row brings it back."""
        for replica, directory in told:
            if self._wanted.get(replica) == directory:
                del self._wanted[replica]
        for replica, directory in list(self._wanted.items()):
            if self._is_known(replica, directory):
                del self._wanted[replica]

    def _request(self, told: Iterable[tuple[Replica, UUID]]) -> AssignReplicasToDirsRequest:
        directories: dict[UUID, dict[UUID, list[PartitionData]]] = {}
        for (topic_id, index), directory in told:
            rows = directories.setdefault(directory, {}).setdefault(topic_id, [])
            rows.append(PartitionData(partition_index=index))
        return AssignReplicasToDirsRequest(
            broker_id=self._host.runtime.broker_id,
            broker_epoch=self._host.node.broker_epoch,
            directories=[
                DirectoryData(
                    id=directory,
                    topics=[TopicData(topic_id=topic, partitions=rows) for topic, rows in topics.items()],
                )
                for directory, topics in directories.items()
            ],
        )
