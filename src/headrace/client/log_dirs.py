"""What lies in the log directories of each broker: sizes, and how far a replica is behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.grouping import by_topic
from headrace.client.refusals import refusal
from headrace.core.ids import TopicPartition
from headrace.protocol.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from headrace.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


class ReplicaFiles(NamedTuple):
    size: int
    lag: int
    """Records behind the high watermark."""


class LogDirectory(NamedTuple):
    path: str
    failed: bool
    total_bytes: int
    usable_bytes: int
    replicas: dict[TopicPartition, ReplicaFiles]
    arriving: Mapping[TopicPartition, ReplicaFiles] = {}
    """Replicas on their way from another directory of the broker, behind the ones that they will replace."""


class Arrival(NamedTuple):
    broker_id: int
    directory: str
    files: ReplicaFiles


async def describe_log_dirs(
    cluster: Cluster, broker_id: int, partitions: Iterable[TopicPartition] | None = None
) -> list[LogDirectory]:
    """The directories of one broker, with what they hold of `partitions`, or with everything."""
    topics = None if partitions is None else by_topic(partitions)
    request = DescribeLogDirsRequest(
        topics=None
        if topics is None
        else [DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics.items()]
    )
    reply = await cluster.ask_broker(broker_id, request, DescribeLogDirsResponse)
    if reply.error_code:
        raise refusal(reply.error_code, f"the log directories of broker {broker_id}")
    return [
        LogDirectory(
            result.log_dir,
            bool(result.error_code),
            result.total_bytes,
            result.usable_bytes,
            _files(result, arriving=False),
            _files(result, arriving=True),
        )
        for result in reply.results
    ]


def _files(result: DescribeLogDirsResult, *, arriving: bool) -> dict[TopicPartition, ReplicaFiles]:
    return {
        TopicPartition(topic.name, entry.partition_index): ReplicaFiles(
            entry.partition_size, entry.offset_lag
        )
        for topic in result.topics
        for entry in topic.partitions
        if entry.is_future_key == arriving
    }


async def directories_of(cluster: Cluster, broker_ids: Iterable[int]) -> dict[int, list[LogDirectory]]:
    """The directories of each broker, without their replicas. Who cannot be asked is left out, as below."""

    async def ask(broker_id: int) -> list[LogDirectory] | None:
        try:
            return await describe_log_dirs(cluster, broker_id, ())
        except ClientFailure:
            return None

    wanted = sorted(broker_ids)
    answers = await asyncio.gather(*(ask(broker_id) for broker_id in wanted))
    return {number: answer for number, answer in zip(wanted, answers, strict=True) if answer is not None}


Files = dict[tuple[TopicPartition, int], ReplicaFiles]
"""By partition and broker."""
Arrivals = dict[TopicPartition, list[Arrival]]


async def replica_files(cluster: Cluster, holders: dict[int, list[TopicPartition]]) -> Files:
    return (await files_and_arrivals(cluster, holders))[0]


async def files_and_arrivals(
    cluster: Cluster, holders: dict[int, list[TopicPartition]]
) -> tuple[Files, Arrivals]:
    """The files of the partitions that each broker holds, and what moves between its directories.

    A broker that cannot be asked is left out: this is a view, and a broken broker is a reason to look.
    """

    async def ask(broker_id: int, partitions: list[TopicPartition]) -> list[LogDirectory]:
        try:
            return await describe_log_dirs(cluster, broker_id, partitions)
        except ClientFailure:
            return []

    answers = await asyncio.gather(*(ask(broker_id, partitions) for broker_id, partitions in holders.items()))
    files: Files = {}
    arrivals: Arrivals = {}
    for broker_id, directories in zip(holders, answers, strict=True):
        for directory in directories:
            for partition, found in directory.replicas.items():
                files[partition, broker_id] = found
            for partition, found in directory.arriving.items():
                arrivals.setdefault(partition, []).append(Arrival(broker_id, directory.path, found))
    return files, arrivals
