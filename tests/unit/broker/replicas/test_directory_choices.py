"""Which log directory holds which replica: told to the controller where the metadata does not know it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from headrace.broker.replicas import directory_choices
from headrace.broker.replicas.directory_choices import DirectoryChoices
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY, PartitionState
from headrace.core.errors import NotController
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from headrace.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from headrace.replication.partition import Partition
from tests.unit.broker.replicas.leader_and_follower import (
    FOLLOWER,
    TOPIC_ID,
    Channel,
    Host,
    partition_of,
    until,
)

OTHERS = UUID(int=900)


def new_host(directories: str = "/one,/two") -> Host:
    host = Host(None, log_dirs=directories)
    host.channel.answers = [AssignReplicasToDirsResponse()]
    return host


def say(host: Host, index: int, directory: UUID) -> None:
    """The metadata has this partition, with this broker's replica in `directory`."""
    image = host.metadata.image
    topic = image.topic_by_id(TOPIC_ID) or image.add_topic("orders", TOPIC_ID)
    topic.add(index, PartitionState(1, 0, 0, (1, FOLLOWER), (1, FOLLOWER), (OTHERS, directory)))


@asynccontextmanager
async def running(host: Host) -> AsyncIterator[tuple[DirectoryChoices, Channel]]:
    choices = DirectoryChoices(host.parts)
    choices.start()
    try:
        yield choices, host.channel
    finally:
        await choices.stop()


def told(request: AssignReplicasToDirsRequest) -> dict[UUID, list[int]]:
    return {
        directory.id: [row.partition_index for topic in directory.topics for row in topic.partitions]
        for directory in request.directories
    }


def mine(index: int, directory: UUID | None = None) -> Partition:
    partition = partition_of(FOLLOWER, index)
    if directory is not None:
        partition.log.directory.uuid = directory
    return partition


async def test_unassigned_and_wrong_directories_are_told_together() -> None:
    host = new_host()
    one, two = UUID(int=1), UUID(int=2)
    for index, said in enumerate([UNASSIGNED_DIRECTORY, one, two, one]):
        say(host, index, said)
    partitions = [mine(0, one), mine(1, one), mine(2, one), mine(3, two)]
    async with running(host) as (choices, channel):
        for partition in partitions:
            choices.consider(partition)
        await until(lambda: channel.requests)
        (request,) = channel.requests
        assert (request.broker_id, request.broker_epoch) == (FOLLOWER, host.node.broker_epoch)
        assert told(request) == {one: [0, 2], two: [3]}
        await asyncio.sleep(0.01)
        assert len(channel.requests) == 1


async def test_a_broker_with_one_directory_has_nothing_to_tell() -> None:
    host = new_host("/one")
    say(host, 0, UNASSIGNED_DIRECTORY)
    async with running(host) as (choices, channel):
        choices.consider(mine(0))
        await asyncio.sleep(0.01)
        assert not channel.requests


async def test_what_could_not_be_told_is_told_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(directory_choices, "FIRST_PAUSE", 0.005)
    host = new_host()
    host.channel.answers = [
        NotController("nobody"),
        ValueError("a mistake"),
        AssignReplicasToDirsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
        AssignReplicasToDirsResponse(),
    ]
    say(host, 0, UNASSIGNED_DIRECTORY)
    async with running(host) as (choices, channel):
        choices.consider(mine(0))
        await until(lambda: len(channel.requests) == 4)
        await asyncio.sleep(0.05)
        assert len(channel.requests) == 4


async def test_what_is_no_longer_so_is_not_told(monkeypatch: Any) -> None:
    monkeypatch.setattr(directory_choices, "FIRST_PAUSE", 0.01)
    host = new_host()
    host.channel.answers = [NotController("nobody")]
    say(host, 0, UNASSIGNED_DIRECTORY)
    async with running(host) as (choices, channel):
        choices.consider(mine(0))
        await until(lambda: channel.requests)
        topic = host.metadata.image.topic_by_id(TOPIC_ID)
        assert topic is not None
        host.metadata.image.remove_topic(topic)
        await asyncio.sleep(0.1)
        assert len(channel.requests) <= 2
