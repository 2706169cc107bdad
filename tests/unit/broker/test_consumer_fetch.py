"""Fetches by consumers in a cluster: what is visible, from which replica, and where they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace.broker.cluster.metadata_partition import METADATA_TOPIC_ID
from headrace.config.broker_properties.cluster import RACK_AWARE_SELECTOR
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from headrace.protocol.messages.fetch_response import FetchResponse, PartitionData
from headrace.protocol.primitives import Reader
from tests.unit.broker.serving import LOCAL, TOPIC, TOPIC_ID, Registration, Server, sent
from tests.unit.log.material import NOW
from tests.unit.replication.replicas import answer as answer_of
from tests.unit.replication.replicas import fetch, row

NEWEST = 17


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    yield server
    server.close()


def ask(
    server: Server,
    offset: int = 0,
    *,
    version: int = NEWEST,
    epoch: int = -1,
    rack: str = "",
    replica: int = -1,
    wait_ms: int = 0,
    min_bytes: int = 1,
) -> Response:
    by_id = version >= 13
    wanted = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    topic = (
        FetchTopic(topic=TOPIC, partitions=[wanted])
        if not by_id
        else FetchTopic(topic_id=TOPIC_ID, partitions=[wanted])
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[topic],
        rack_id=rack,
    )
    if version >= 15:
        request.replica_state = ReplicaState(replica_id=replica, replica_epoch=-1)
    else:
        request.replica_id = replica
    return server.ask(request, version)


def data_of(answer: Response, version: int = NEWEST) -> PartitionData:
    frame = sent(answer)
    response = FetchResponse.decode(Reader(frame, 5 if version >= 12 else 4), version)
    return response.responses[0].partitions[0]


def follow(server: Server) -> None:
    """From now on broker 9 leads in epoch 9, and this one follows."""
    server.partition.assign(row(9, 9, (9, 1), replicas=(9, 1)), LOCAL, 0.0)


async def test_a_consumer_sees_what_is_committed(server: Server) -> None:
    server.append()
    assert data_of(ask(server)).records == b""
    fetch(server.partition, 2, 1)
    assert data_of(ask(server)).records == server.partition.log.active_segment.file().pread(1 << 20, 0)


async def test_a_waiting_consumer_is_woken_by_the_high_watermark(server: Server) -> None:
    answer = ask(server, wait_ms=10_000)
    assert isinstance(answer, DelayedResponse)
    server.append()
    await asyncio.sleep(0)
    assert not answer.is_done
    fetch(server.partition, 2, 1)
    await asyncio.sleep(0)
    assert data_of(answer).records
    assert not server.partition._readers


async def test_a_consumer_with_a_question_behind_its_fetch_waits_for_a_moment_only(server: Server) -> None:
    """Yet not for none: two fetches that are always under way would chase each other."""
    answer = ask(server, wait_ms=10_000)
    assert isinstance(answer, DelayedResponse)
    assert answer.on_overtaken is not None
    answer.on_overtaken()
    answer.on_overtaken()
    await asyncio.sleep(0)
    assert not answer.is_done
    await asyncio.sleep(0.05)
    assert data_of(answer).records == b""
    assert not server.partition._readers


async def test_a_consumer_waits_for_as_many_bytes_as_it_asked_for(server: Server) -> None:
    server.append()
    size = server.partition.log.size_bytes
    answer = ask(server, wait_ms=10_000, min_bytes=2 * size)
    assert isinstance(answer, DelayedResponse)
    server.append()
    fetch(server.partition, 2, 1)
    await asyncio.sleep(0)
    assert not answer.is_done
    fetch(server.partition, 2, 2)
    await asyncio.sleep(0)
    assert len(data_of(answer).records or b"") == 2 * size


async def test_a_follower_serves_consumers_up_to_its_own_high_watermark(server: Server) -> None:
    leader = Server()
    follow(server)
    leader.partition.assign(row(9, 9, (9, 1), replicas=(9, 1)), 9, 0.0)
    leader.append()
    position = server.partition.fetch_position()
    assert position is not None
    server.partition.on_fetched(position, answer_of(leader.partition), NOW)
    assert data_of(ask(server)).records == b""
    waiting = ask(server, wait_ms=10_000)
    position = server.partition.fetch_position()
    assert position is not None
    server.partition.on_fetched(position, answer_of(high_watermark=1), NOW)
    await asyncio.sleep(0)
    assert data_of(waiting).records
    data = data_of(ask(server, epoch=9))
    assert data.records
    assert data.high_watermark == 1
    leader.close()


@pytest.mark.parametrize(
    ("version", "replica", "error"),
    [
        (NEWEST, -1, ErrorCode.NONE),
        (11, -1, ErrorCode.NONE),
        (10, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (10, -2, ErrorCode.NONE),
        (NEWEST, -2, ErrorCode.NONE),
    ],
)
async def test_who_may_read_from_a_follower(
    server: Server, version: int, replica: int, error: ErrorCode
) -> None:
    follow(server)
    assert data_of(ask(server, version=version, replica=replica), version).error_code == error


async def test_who_compares_replicas_reads_what_is_not_committed_too(server: Server) -> None:
    """As in Kafka. A replica that mends itself knows what is committed, and the one that it asks may not."""
    server.append()
    assert server.partition.high_watermark == 0
    assert data_of(ask(server)).records == b""
    assert data_of(ask(server, replica=-2)).records
    follow(server)
    assert data_of(ask(server)).records == b""
    assert data_of(ask(server, replica=-2)).records


async def test_a_follower_compares_epochs_too(server: Server) -> None:
    follow(server)
    assert data_of(ask(server, epoch=8)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert data_of(ask(server, epoch=10)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_the_wrong_broker_names_the_leader_and_its_address(server: Server) -> None:
    server.partition.resign()
    frame = sent(ask(server))
    response = FetchResponse.decode(Reader(frame, 5), NEWEST)
    data = response.responses[0].partitions[0]
    assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (9, 9)
    assert [(node.node_id, node.host) for node in response.node_endpoints] == [(9, "host-9")]


async def test_the_metadata_is_for_brokers(server: Server) -> None:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[wanted])
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=[topic])
    assert data_of(server.ask(request, NEWEST)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert server.metadata_fetches == []


# --- reading in one's own rack (KIP-392) --------------------------------------------------------------------


def racks(server: Server, **racks: str) -> None:
    for name, rack in racks.items():
        number = int(name.removeprefix("b"))
        server.image.brokers[number] = Registration(number, rack=rack)


@pytest.fixture
async def spread() -> AsyncIterator[Server]:
    """Brokers 1 and 2 in sync, broker 3 not; each in a rack of its own. One record, at all of them."""
    server = Server(replica_selector_class=RACK_AWARE_SELECTOR)
    racks(server, b1="a", b2="b", b3="c")
    server.append()
    fetch(server.partition, 2, 1)
    fetch(server.partition, 3, 1)
    yield server
    server.close()


@pytest.mark.parametrize(("rack", "preferred"), [("a", -1), ("b", 2), ("c", -1), ("", -1), ("z", -1)])
async def test_a_consumer_is_sent_to_the_replica_in_its_rack(
    spread: Server, rack: str, preferred: int
) -> None:
    data = data_of(ask(spread, rack=rack))
    assert data.preferred_read_replica == preferred
    assert bool(data.records) == (preferred == -1)


async def test_nobody_is_sent_to_a_replica_that_lacks_the_offset(spread: Server) -> None:
    spread.append()
    assert data_of(ask(spread, 2, rack="b")).preferred_read_replica == -1


async def test_nobody_is_sent_to_a_fenced_broker(spread: Server) -> None:
    spread.image.brokers[2] = Registration(2, rack="b", fenced=True)
    assert data_of(ask(spread, rack="b")).preferred_read_replica == -1


async def test_without_the_selector_consumers_stay_with_the_leader(server: Server) -> None:
    racks(server, b1="a", b2="b")
    server.append()
    fetch(server.partition, 2, 1)
    assert data_of(ask(server, rack="b")).preferred_read_replica == -1
