"""ListOffsets and DeleteRecords in a cluster: what a new leader cannot know, what replicas must follow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from headrace.broker.handlers import delete_records, list_offsets
from headrace.broker.requests.api import Call
from headrace.network.connection import Connection
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.messages.delete_records_response import DeleteRecordsPartitionResult
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
)
from tests.unit.broker.serving import LOCAL, TOPIC, Registration, Server
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import fetch, row

LATEST, EARLIEST = -1, -2


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    yield server
    server.close()


def call(version: int) -> Call:
    return Call(version, None, cast(Connection, None))


async def list_offset(
    server: Server, timestamp: int, *, version: int = 9, replica: int = -1
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=TOPIC, partitions=[asked])
    request = ListOffsetsRequest(replica_id=replica, topics=[topic])
    found = list_offsets.handle(server.context, request, call(version))
    response = found if isinstance(found, ListOffsetsResponse) else await found
    return response.topics[0].partitions[0]


async def test_a_new_leader_does_not_say_where_the_end_is(server: Server) -> None:
    """Rule 5 (KIP-207)."""
    server.append()
    server.append()
    fetch(server.partition, 2, 1)
    server.partition.assign(row(LOCAL, 2, (1, 2)), LOCAL, 0.0)
    assert (await list_offset(server, LATEST)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert (await list_offset(server, LATEST, version=4)).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (await list_offset(server, EARLIEST)).error_code == 0
    assert (await list_offset(server, NOW)).offset == 0
    assert (await list_offset(server, NOW + 10**6)).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    fetch(server.partition, 2, 2)
    assert (await list_offset(server, LATEST)).offset == 2
    assert (await list_offset(server, NOW + 10**6)).offset == -1


async def test_a_quarantined_replica_tells_tools_how_far_it_reached(server: Server) -> None:
    """Whoever elects a shorter log must know of it: a restart may open it again."""
    name = server.partition.topic_partition
    server.context.partitions.remove(name)
    found = await list_offset(server, LATEST, replica=-2)
    assert (bool(found.error_code), found.leader_epoch, found.offset) == (True, -1, -1)
    server.context.storage.logs.quarantined_ends[name] = 3, 550
    found = await list_offset(server, LATEST, replica=-2)
    assert (bool(found.error_code), found.leader_epoch, found.offset) == (True, 3, 550)
    assert (await list_offset(server, LATEST)).offset == -1, "readers hear of it from the leader"


async def test_only_tools_ask_a_follower(server: Server) -> None:
    server.partition.assign(row(2, 2), LOCAL, 0.0)
    assert (await list_offset(server, LATEST)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await list_offset(server, LATEST, replica=-2)).error_code == 0


async def test_tools_are_told_where_the_log_itself_ends(server: Server) -> None:
    server.append()
    server.append()
    fetch(server.partition, 2, 1)
    fetch(server.partition, 3, 1)
    assert (await list_offset(server, LATEST)).offset == 1
    assert (await list_offset(server, LATEST, replica=-2)).offset == 2
    server.partition.assign(row(LOCAL, 2, (1, 2)), LOCAL, 0.0)
    assert (await list_offset(server, LATEST, replica=-2)).offset == 2


async def delete(server: Server, offset: int, timeout_ms: int = 5000) -> DeleteRecordsPartitionResult:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=TOPIC, partitions=[asked])], timeout_ms=timeout_ms
    )
    response = await delete_records.handle(server.context, request, call(2))
    return response.topics[0].partitions[0]


def report(server: Server, replica_id: int, log_start: int) -> None:
    server.partition.on_replica_fetch(replica_id, 100, server.partition.log.end_offset, 0.0, log_start)


@pytest.fixture
async def filled(server: Server) -> Server:
    """Three records, committed; both followers hold all of them."""
    for _ in range(3):
        server.append()
    report(server, 2, 0)
    report(server, 3, 0)
    return server


async def test_a_deletion_waits_for_the_replicas(filled: Server) -> None:
    deleting = asyncio.ensure_future(delete(filled, 2))
    await asyncio.sleep(0.05)
    assert filled.partition.log.log_start_offset == 2
    report(filled, 2, 2)
    await asyncio.sleep(0.05)
    assert not deleting.done()
    report(filled, 3, 2)
    result = await asyncio.wait_for(deleting, 5)
    assert (result.error_code, result.low_watermark) == (0, 2)
    assert filled.checkpoints == 1


async def test_a_deletion_does_not_wait_for_the_dead(filled: Server) -> None:
    report(filled, 2, 2)
    filled.image.brokers[3] = Registration(3, fenced=True)
    result = await asyncio.wait_for(delete(filled, 2), 5)
    assert (result.error_code, result.low_watermark) == (0, 2)


async def test_a_deletion_whose_time_is_over_says_how_far_it_is(filled: Server) -> None:
    report(filled, 2, 1)
    result = await asyncio.wait_for(delete(filled, -1, timeout_ms=50), 5)
    assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert filled.partition.log.log_start_offset == 3


async def test_a_deletion_ends_with_the_leadership(filled: Server) -> None:
    deleting = asyncio.ensure_future(delete(filled, 2))
    await asyncio.sleep(0.05)
    filled.partition.assign(row(2, 2), LOCAL, 0.0)
    result = await asyncio.wait_for(deleting, 5)
    assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("partition", "code"), [(0, 17), (7, 3)])
async def test_records_of_internal_topics_are_never_deleted(
    server: Server, monkeypatch: pytest.MonkeyPatch, partition: int, code: int
) -> None:
    """Whatever their cleanup.policy says."""
    monkeypatch.setattr(delete_records, "INTERNAL_TOPICS", frozenset({TOPIC}))
    server.append()
    asked = DeleteRecordsPartition(partition_index=partition, offset=-1)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[asked])], timeout_ms=50)
    response = await delete_records.handle(server.context, request, call(2))
    assert response.topics[0].partitions[0].error_code == code
    assert server.partition.log.log_start_offset == 0
