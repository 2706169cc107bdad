"""Consumers that see only what transactions have decided: Fetch, ListOffsets and DescribeProducers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from headrace.broker.handlers import describe_producers, list_offsets
from headrace.broker.requests.api import Call
from headrace.network.connection import Connection
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.batch import check
from headrace.protocol.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from headrace.protocol.messages.describe_producers_response import ProducerState
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse, PartitionData
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse
from headrace.protocol.primitives import Reader
from tests.unit.broker.serving import TOPIC, TOPIC_ID, Server, sent
from tests.unit.log.material import NOW, batch_of
from tests.unit.log.transactional_writes import marker, verify
from tests.unit.replication.replicas import fetch

CALL = Call(9, None, cast(Connection, None))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(isr=(1,))
    yield server
    server.close()


def write(server: Server, sequence: int = 0, *, producer: int = 5, when: int = NOW, size: int = 5) -> None:
    partition = server.partition
    if partition.log.producers.needs_verification(producer, 0):
        verify(partition.log, producer, sequence=sequence)
    batch, header = batch_of(
        b"v" * size,
        timestamp=when,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
    )
    partition.append(batch, header, acks=1, now_ms=NOW)


def end(server: Server, *, commit: bool = True, producer: int = 5) -> None:
    batch = marker(producer, 0, commit=commit)
    server.partition.append(batch, check(batch), acks=1, now_ms=NOW, from_client=False)


def ask(
    server: Server,
    offset: int = 0,
    *,
    committed: bool = True,
    wait_ms: int = 0,
    min_bytes: int = 1,
    version: int = 17,
    session: tuple[int, int] = (0, -1),
    named: bool = True,
) -> Response:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(partitions=[wanted])
    if version >= 13:
        topic.topic_id = TOPIC_ID
    else:
        topic.topic = TOPIC
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=1 if committed else 0,
        session_id=session[0],
        session_epoch=session[1],
        topics=[topic] if named else [],
    )
    return server.ask(request, version)


def response_of(answer: Response, version: int = 17) -> FetchResponse:
    return FetchResponse.decode(Reader(sent(answer), 5 if version >= 12 else 4), version)


def data_of(answer: Response, version: int = 17) -> PartitionData:
    return response_of(answer, version).responses[0].partitions[0]


@pytest.mark.parametrize("version", [4, 11, 12, 17])
async def test_aborted_transactions_are_named(server: Server, version: int) -> None:
    write(server)
    end(server, commit=False)
    write(server, 1)
    end(server)
    data = data_of(ask(server, version=version), version)
    assert data.aborted_transactions is not None
    assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions] == [(5, 0)]
    assert (data.high_watermark, data.last_stable_offset) == (4, 4)
    assert data_of(ask(server, 2, version=version), version).aborted_transactions == []
    assert data_of(ask(server, version=version, committed=False), version).aborted_transactions is None


async def test_nothing_undecided_is_read(server: Server) -> None:
    server.append()
    size = server.partition.log.size_bytes
    write(server)
    server.append()
    data = data_of(ask(server))
    assert (len(data.records or b""), data.high_watermark, data.last_stable_offset) == (size, 3, 1)
    assert len(data_of(ask(server, committed=False)).records or b"") > 2 * size
    end(server)
    assert len(data_of(ask(server)).records or b"") > 3 * size


async def test_an_open_transaction_wakes_nobody(server: Server) -> None:
    stable, every = ask(server, wait_ms=10_000), ask(server, wait_ms=10_000, committed=False)
    assert isinstance(stable, DelayedResponse)
    assert isinstance(every, DelayedResponse)
    write(server)
    await asyncio.sleep(0)
    assert (not stable.is_done, not every.is_done) == (True, False)
    end(server)
    await asyncio.sleep(0)
    assert data_of(stable).last_stable_offset == 2


async def test_bytes_count_when_they_become_readable(server: Server) -> None:
    answer = ask(server, wait_ms=10_000, min_bytes=1000)
    assert isinstance(answer, DelayedResponse)
    write(server, size=900)
    end(server)
    await asyncio.sleep(0)
    assert data_of(answer).records


async def test_a_session_hears_of_the_last_stable_offset(server: Server) -> None:
    first = response_of(ask(server, session=(0, 0)))
    session = first.session_id
    assert session
    answer = ask(server, wait_ms=10_000, session=(session, 1), named=False)
    assert isinstance(answer, DelayedResponse)
    write(server)
    await asyncio.sleep(0)
    assert not answer.is_done
    end(server, commit=False)
    await asyncio.sleep(0)
    told = response_of(answer).responses[0].partitions[0]
    assert (told.last_stable_offset, len(told.aborted_transactions or [])) == (2, 1)


async def test_a_session_may_change_what_it_reads(server: Server) -> None:
    session = response_of(ask(server, session=(0, 0))).session_id
    write(server)
    told = response_of(ask(server, session=(session, 1), named=False)).responses
    assert [(each.partitions[0].high_watermark, each.partitions[0].records) for each in told] == [(1, b"")]
    told = response_of(ask(server, committed=False, session=(session, 2), named=False)).responses
    assert told[0].partitions[0].records
    answer = ask(server, 1, committed=False, session=(session, 3), wait_ms=10_000)
    assert isinstance(answer, DelayedResponse)
    write(server, 1)
    await asyncio.sleep(0)
    assert answer.is_done


async def test_what_is_not_replicated_is_not_decided() -> None:
    server = Server(isr=(1, 2))
    write(server)
    end(server)
    fetch(server.partition, 2, 1)
    data = data_of(ask(server))
    assert (data.high_watermark, data.last_stable_offset, data.records) == (1, 0, b"")
    fetch(server.partition, 2, 2)
    assert data_of(ask(server)).last_stable_offset == 2
    server.close()


# --- other questions ---------------------------------------------------------------------------------------


async def offset_of(server: Server, timestamp: int, *, committed: bool) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1 if committed else 0,
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])],
    )
    found = list_offsets.handle(server.context, request, CALL)
    response = found if isinstance(found, ListOffsetsResponse) else await found
    return response.topics[0].partitions[0].offset


async def test_offsets_for_both_kinds_of_readers(server: Server) -> None:
    server.append()
    write(server, when=NOW + 50)
    assert await offset_of(server, -1, committed=True) == 1
    assert await offset_of(server, -1, committed=False) == 2
    for timestamp in (NOW + 10, -3):
        assert await offset_of(server, timestamp, committed=True) == -1
        assert await offset_of(server, timestamp, committed=False) == 1
    end(server)
    assert await offset_of(server, -1, committed=True) == 3
    assert await offset_of(server, -3, committed=True) == 1


def producers(server: Server) -> list[ProducerState]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
    return describe_producers.handle(server.context, request, CALL).topics[0].partitions[0].active_producers


async def test_producers_are_described_with_their_transactions(server: Server) -> None:
    server.append()
    write(server)
    write(server, 1)
    (only,) = producers(server)
    assert (only.producer_id, only.producer_epoch, only.last_sequence) == (5, 0, 1)
    assert (only.current_txn_start_offset, only.coordinator_epoch) == (1, -1)
    end(server)
    (only,) = producers(server)
    assert (only.current_txn_start_offset, only.coordinator_epoch, only.last_timestamp) == (-1, 3, NOW)
