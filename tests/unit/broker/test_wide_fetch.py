"""A fetch of more partitions with records than one answer gives: the others have their turn next."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from headrace.broker.fetch.reading import MOST_GIVING
from headrace.broker.handlers import fetch
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.primitives import Reader
from tests.unit.broker.serving import TOPIC_ID, Server, sent

NEWEST = 17
PARTITIONS = 2 * MOST_GIVING + 50
CONSUMER, FOLLOWER = -1, 2


@pytest.fixture(params=[CONSUMER, FOLLOWER])
def replica(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
async def server(replica: int) -> AsyncIterator[Server]:
    """A consumer sees what is committed: by the leader alone, unless a follower is asked about."""
    server = Server(PARTITIONS, isr=(1, 2) if replica == FOLLOWER else (1,))
    for index in range(PARTITIONS):
        server.append(index)
    yield server
    server.close()


def ask(
    server: Server,
    offsets: dict[int, int],
    *,
    session: int = 0,
    epoch: int = -1,
    replica: int,
    min_bytes: int = 1,
    wait_ms: int = 0,
) -> Response:
    wanted = [
        FetchPartition(
            partition=index, current_leader_epoch=1, fetch_offset=offset, partition_max_bytes=1 << 20
        )
        for index, offset in offsets.items()
    ]
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 30,
        session_id=session,
        session_epoch=epoch,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=wanted)] if wanted else [],
        replica_state=ReplicaState(replica_id=replica, replica_epoch=-1),
    )
    return server.ask(request, NEWEST)


def response(answer: Response) -> FetchResponse:
    return FetchResponse.decode(Reader(sent(answer), 5), NEWEST)


def gave(answer: FetchResponse) -> list[int]:
    return [row.partition_index for topic in answer.responses for row in topic.partitions if row.records]


async def test_an_answer_gives_records_of_so_many_and_mentions_all(server: Server, replica: int) -> None:
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    seen: list[int] = []
    for count in (MOST_GIVING, MOST_GIVING, 50, 0):
        answer = response(ask(server, offsets, replica=replica))
        assert len(answer.responses[0].partitions) == PARTITIONS
        assert {row.error_code for row in answer.responses[0].partitions} == {0}
        assert len(gave(answer)) == count
        seen += gave(answer)
        offsets.update(dict.fromkeys(gave(answer), 1))
    assert sorted(seen) == [*range(PARTITIONS)]


async def test_a_session_gives_everybody_a_turn(server: Server, replica: int) -> None:
    """Also while those that had their turn have more to give."""
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    answer = response(ask(server, offsets, epoch=0, replica=replica))
    session, last, turns = answer.session_id, gave(answer), [gave(answer)]
    for epoch in (1, 2):
        for index in last:
            server.append(index)
        answer = response(ask(server, dict.fromkeys(last, 1), session=session, epoch=epoch, replica=replica))
        last = gave(answer)
        turns.append(last)
    assert [len(turn) for turn in turns] == [MOST_GIVING] * 3
    assert {index for turn in turns for index in turn} == {*range(PARTITIONS)}


async def test_what_is_left_for_the_next_fetch_is_not_waited_for(server: Server, replica: int) -> None:
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    answer = ask(server, offsets, replica=replica, min_bytes=1 << 20, wait_ms=100_000)
    assert len(gave(response(answer))) == MOST_GIVING


async def test_an_offset_that_is_not_there_is_told_whatever_the_turn(server: Server, replica: int) -> None:
    offsets = dict.fromkeys(range(PARTITIONS), 0)
    offsets[PARTITIONS - 1] = 9
    rows = response(ask(server, offsets, replica=replica)).responses[0].partitions
    assert [row.partition_index for row in rows if row.error_code] == [PARTITIONS - 1]


async def test_no_more_is_brought_from_a_disk_than_is_given(server: Server, replica: int) -> None:
    brought: list[int] = []
    bring = server.cold_reads.bring

    def count(parts: list[object], then: object) -> None:
        brought.append(len(parts))
        bring(parts, then)

    server.cold_reads.bring = count
    for partition in server.partitions:
        partition.log.active_segment.release()
    answer = ask(server, dict.fromkeys(range(PARTITIONS), 0), replica=replica)
    assert len(gave(response(answer))) == MOST_GIVING
    assert brought == [MOST_GIVING]


def test_what_nobody_waits_for_any_more_is_not_even_read() -> None:
    """It waited for the thread while its connection was closed."""
    pending = DelayedResponse()
    pending.abandon()
    assert fetch._read(b"no request at all", 0, NEWEST, PARTITIONS, pending) is None
