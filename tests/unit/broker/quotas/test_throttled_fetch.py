"""Fetches of a client that is over its quota: no records, sessions as Kafka has them; replicas never."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.broker.quotas.client_quotas import UNLIMITED
from headrace.network.response import DelayedResponse
from headrace.protocol.headers import read_response_header
from headrace.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ReplicaState,
)
from headrace.protocol.messages.fetch_response import FetchResponse
from tests.unit.broker.serving import TOPIC_ID, Server, sent

VERSION = 17
THROTTLED = 0


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(2, isr=(1,))
    for _ in range(20):
        server.append(0, b"v" * 1000)
    yield server
    server.close()


def ask(
    server: Server, most_bytes: int, *, epoch: int = -1, session: int = 0, replica: int = -1, wait_ms: int = 0
) -> FetchResponse:
    topics = (
        []
        if epoch > 0
        else [FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(partition=0, current_leader_epoch=1)])]
    )
    for topic in topics:
        topic.partitions[0].partition_max_bytes = 1 << 20
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=replica, replica_epoch=-1 if replica < 0 else 100),
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session,
        session_epoch=epoch,
        topics=topics,
    )
    answer = server.ask(request, VERSION, most_bytes)
    assert not isinstance(answer, DelayedResponse), "it is answered at once"
    body = sent(answer)
    _, at = read_response_header(body, FetchRequest.API_KEY, VERSION)
    return FetchResponse.from_bytes(bytes(body[at:]), VERSION)


def size(answer: FetchResponse) -> int:
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == 0
    return len(partition.records or b"")


async def test_a_full_fetch_gets_no_partition_and_no_session(server: Server) -> None:
    for epoch in (-1, 0):
        answer = ask(server, THROTTLED, epoch=epoch, wait_ms=60_000)
        assert (answer.error_code, answer.session_id, answer.responses) == (0, 0, [])
    assert len(server.context.fetches.sessions) == 0


async def test_a_session_goes_on_where_it_was(server: Server) -> None:
    begun = ask(server, UNLIMITED, epoch=0)
    assert begun.session_id != 0
    held = ask(server, THROTTLED, epoch=1, session=begun.session_id, wait_ms=60_000)
    assert (held.error_code, held.session_id, held.responses) == (0, begun.session_id, [])
    again = ask(server, UNLIMITED, epoch=2, session=begun.session_id)
    assert again.error_code == 0
    assert again.responses, "nothing that was there is lost by having been throttled"


async def test_a_throttled_client_can_still_end_its_session(server: Server) -> None:
    begun = ask(server, UNLIMITED, epoch=0)
    ask(server, THROTTLED, epoch=-1, session=begun.session_id)
    assert len(server.context.fetches.sessions) == 0


async def test_a_replica_is_never_throttled() -> None:
    server = Server()
    for _ in range(20):
        server.append(0, b"v" * 1000)
    assert size(ask(server, THROTTLED, replica=2)) > 10_000
    server.close()


async def test_an_answer_holds_no_more_than_the_quota_allows(server: Server) -> None:
    assert 1000 < size(ask(server, 5_000, replica=-2)) <= 5_000
    assert size(ask(server, UNLIMITED, replica=-2)) > 10_000
