"""Fetches by replicas: how far they read, what they say by it, and how a large session is served."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from headrace.broker.cluster.metadata_partition import METADATA_TOPIC_ID
from headrace.config.broker_properties.cluster import RACK_AWARE_SELECTOR
from headrace.metrics.registry import TopicMetrics
from headrace.network.response import DelayedResponse, Response
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.replica_fetch_codec import (
    FetchedPartitionData,
    ReplicaFetchAnswer,
    ReplicaFetchEncoder,
    WantedPartition,
    parse_replica_fetch,
)
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer
from tests.unit.broker.serving import TOPIC_ID, Server, sent
from tests.unit.replication.replicas import row

EPOCH = 1


class Follower:
    """Broker 2 or 3, as it asks the server."""

    def __init__(
        self,
        server: Server,
        replica_id: int = 2,
        *,
        epoch: int = 100,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
    ) -> None:
        self._server = server
        self._encoder = ReplicaFetchEncoder(
            "follower",
            replica_id=replica_id,
            replica_epoch=epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
        )
        self.session = (0, -1)

    def ask(
        self,
        wanted: Sequence[WantedPartition] = (),
        *,
        topic: bytes = TOPIC_ID.bytes,
        forget: Sequence[int] = (),
    ) -> Response:
        topics = [(topic, wanted)] if wanted else []
        forgotten = [(topic, forget)] if forget else []
        return self._server.fetch_frame(self._encoder.encode(1, *self.session, topics, forgotten))

    def fetch(self, *wanted: WantedPartition, **rest: Any) -> dict[int, FetchedPartitionData]:
        """By partition; opens or continues the session if there is to be one."""
        return self.read(self.ask(wanted, **rest))

    def read(self, answer: Response) -> dict[int, FetchedPartitionData]:
        said = self.whole(answer)
        assert said.error_code == 0
        return {data.partition: data for _, partitions in said.topics for data in partitions}

    def whole(self, answer: Response) -> ReplicaFetchAnswer:
        said = parse_replica_fetch(sent(answer))
        if self.session[1] >= 0 and said.error_code == 0:
            self.session = (said.session_id, self.session[1] + 1)
        return said

    def open_session(self) -> None:
        self.session = (0, 0)


def at(
    offset: int, partition: int = 0, *, epoch: int = EPOCH, last: int = -1, limit: int = 1 << 20
) -> WantedPartition:
    return (partition, epoch, offset, last, 0, limit)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    yield server
    server.close()


async def test_a_replica_reads_to_the_end_and_says_what_it_has(server: Server) -> None:
    server.append()
    server.append()
    follower = Follower(server)
    data = follower.fetch(at(0))[0]
    assert (len(data.records), data.high_watermark) == (server.partition.log.size_bytes, 0)
    assert server.partition.high_watermark == 0
    data = follower.fetch(at(2, last=1))[0]
    assert (len(data.records), data.high_watermark) == (0, 2)
    assert server.partition.high_watermark == 2
    assert server.partition.metrics.replication_bytes_out == server.partition.log.size_bytes
    assert server.partition.metrics.bytes_out == 0


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (at(0, epoch=0), ErrorCode.FENCED_LEADER_EPOCH),
        (at(0, epoch=2), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (at(0, epoch=-1), ErrorCode.FENCED_LEADER_EPOCH),
        (at(7), ErrorCode.OFFSET_OUT_OF_RANGE),
        (at(0, partition=5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_what_is_refused_counts_for_nothing(
    server: Server, wanted: WantedPartition, error: ErrorCode
) -> None:
    server.append()
    assert Follower(server).fetch(wanted)[wanted[0]].error_code == error
    assert server.partition.high_watermark == 0


async def test_a_log_that_parts_ways_is_told_where_and_counts_for_nothing(server: Server) -> None:
    server.append()
    data = Follower(server).fetch(at(5, last=1))[0]
    assert (data.error_code, data.diverging, len(data.records)) == (0, (1, 1), 0)
    assert server.partition.high_watermark == 0


async def test_below_the_start_a_replica_is_told_where_to_go_on(server: Server) -> None:
    server.append()
    Follower(server).fetch(at(1, last=1))
    server.partition.delete_records_before(1)
    data = Follower(server, 3).fetch(at(0))[0]
    assert (data.error_code, data.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 1)


async def test_who_is_not_assigned_asks_again_later(server: Server) -> None:
    data = Follower(server, 9).fetch(at(0))[0]
    assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_a_process_that_was_replaced_is_refused_as_a_whole(server: Server) -> None:
    follower = Follower(server, epoch=99)
    assert follower.whole(follower.ask([at(0)])).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert Follower(server, epoch=101).fetch(at(0))[0].error_code == 0, "the metadata is behind it"


async def test_who_does_not_lead_names_the_leader(server: Server) -> None:
    server.partition.assign(row(9, 9), 1, 0.0)
    data = Follower(server).fetch(at(0, epoch=9))[0]
    assert (data.error_code, data.current_leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, (9, 9))


async def test_an_old_word_that_comes_late_does_not_stand(server: Server) -> None:
    """From a link that was given up. The follower has nothing new to say, so it does not repeat itself."""

    def known() -> int:
        ((_, end),) = server.partition.readable_followers(0)
        return end

    for _ in range(4):
        server.append()
    follower = Follower(server)
    follower.open_session()
    follower.fetch(at(4, last=1))
    assert known() == 4
    late = Follower(server)
    late.open_session()
    late.fetch(at(1, last=1))
    assert known() == 1, "to believe too little is safe"
    server.append()
    assert known() == 1, "nothing counts as said before somebody asks"
    follower.fetch()
    assert known() == 4


# --- waiting ------------------------------------------------------------------------------------------------


async def test_a_waiting_replica_is_woken_by_an_append(server: Server) -> None:
    follower = Follower(server, max_wait_ms=10_000)
    answer = follower.ask([at(0)])
    assert isinstance(answer, DelayedResponse)
    server.append()
    await asyncio.sleep(0)
    assert len(follower.read(answer)[0].records) > 0
    assert not server.context.fetches.purgatory


async def test_a_new_epoch_ends_the_wait_in_the_old_one(server: Server) -> None:
    follower = Follower(server, max_wait_ms=10_000)
    answer = follower.ask([at(0)])
    server.partition.assign(row(1, 2, (1, 2)), 1, 0.0)
    await asyncio.sleep(0)
    assert follower.read(answer)[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


async def test_the_high_watermark_alone_wakes_no_replica(server: Server) -> None:
    third = Follower(server, 3, max_wait_ms=10_000)
    server.append()
    third.open_session()
    third.fetch(at(0))
    answer = third.ask([at(1, last=1)])
    assert isinstance(answer, DelayedResponse)
    Follower(server).fetch(at(1, last=1))
    assert server.partition.high_watermark == 1
    await asyncio.sleep(0)
    assert not answer.is_done
    server.append()
    await asyncio.sleep(0)
    assert third.read(answer)[0].high_watermark == 1


async def test_a_log_start_that_retention_raised_is_told_with_the_next_answer(server: Server) -> None:
    """Also to who has everything: nothing else would tell it."""
    follower = Follower(server, max_wait_ms=10_000)
    server.append()
    follower.open_session()
    follower.fetch(at(0))
    assert (await overtaken(follower, follower.ask([at(1, last=1)])))[0].high_watermark == 1
    assert await overtaken(follower, follower.ask()) == {}
    answer = follower.ask()
    server.partition.log.delete_records_before(1)
    server.partition.on_start_raised()
    await asyncio.sleep(0)
    assert isinstance(answer, DelayedResponse)
    assert not answer.is_done, "it is in no hurry"
    assert (await overtaken(follower, answer))[0].log_start_offset == 1


async def overtaken(follower: Follower, answer: Response) -> dict[int, FetchedPartitionData]:
    assert isinstance(answer, DelayedResponse)
    assert answer.on_overtaken is not None
    answer.on_overtaken()
    await asyncio.sleep(0)
    return follower.read(answer)


async def test_in_a_new_epoch_all_is_told_again(server: Server) -> None:
    """A follower that has heard of it first drops what it was told in the old one."""
    follower = Follower(server)
    server.append()
    follower.open_session()
    follower.fetch(at(0))
    server.partition.log.delete_records_before(1)
    assert follower.fetch(at(1, last=1))[0].log_start_offset == 1  # on its way, and dropped
    server.partition.assign(row(1, 2, (1, 2)), 1, 0.0)
    data = follower.fetch(at(1, epoch=2, last=1))[0]
    assert (data.high_watermark, data.log_start_offset) == (1, 1)
    assert follower.fetch() == {}


async def test_it_wakes_replicas_that_consumers_may_read_from() -> None:
    server = Server(replica_selector_class=RACK_AWARE_SELECTOR)
    third = Follower(server, 3, max_wait_ms=10_000)
    server.append()
    third.open_session()
    third.fetch(at(0))
    answer = third.ask([at(1, last=1)])
    Follower(server).fetch(at(1, last=1))
    await asyncio.sleep(0)
    assert third.read(answer)[0].high_watermark == 1
    server.close()


async def test_a_peer_that_leaves_is_forgotten(server: Server) -> None:
    answer = Follower(server, max_wait_ms=10_000).ask([at(0)])
    assert isinstance(answer, DelayedResponse)
    answer.abandon()
    assert not server.context.fetches.purgatory
    assert not server.partition._replica_readers


# --- sessions -----------------------------------------------------------------------------------------------


def reads(server: Server) -> list[int]:
    """Which partitions were read since this was last asked."""
    found = [index for index, each in enumerate(server.partitions) if each.metrics.fetch_requests]
    for partition in server.partitions:
        partition.metrics = TopicMetrics()
    return found


async def test_a_session_is_served_by_what_changed() -> None:
    server = Server(300)
    follower = Follower(server)
    follower.open_session()
    reads(server)  # each has its own count from now on
    assert len(follower.fetch(*(at(0, index) for index in range(300)))) == 300
    assert len(reads(server)) == 300
    assert follower.fetch() == {}
    assert reads(server) == []
    server.append(17)
    server.append(251)
    assert list(follower.fetch()) == [17, 251]
    assert reads(server) == [17, 251]
    assert list(follower.fetch(at(1, 17, last=1), at(1, 251, last=1))) == [17, 251], "with the high watermark"
    assert reads(server) == [17, 251]
    assert follower.fetch() == {}
    assert reads(server) == []
    server.close()


async def test_a_session_goes_on_with_what_the_bytes_did_not_reach() -> None:
    server = Server(3)
    for index in range(3):
        server.append(index)
    size = server.partition.log.size_bytes
    follower = Follower(server, max_bytes=size)
    follower.open_session()
    assert [
        index for index, data in follower.fetch(*(at(0, i) for i in range(3))).items() if data.records
    ] == [0]
    assert [i for i, data in follower.fetch(at(1, 0, last=1)).items() if data.records] == [1]
    assert [i for i, data in follower.fetch(at(1, 1, last=1)).items() if data.records] == [2]
    assert server.partitions[1].high_watermark == 1, "what a replica says counts though it is given nothing"
    server.close()


async def test_what_is_not_taken_is_sent_again(server: Server) -> None:
    """A peer that lost the answer repeats nothing but its session: it gets the same once more."""
    server.append()
    follower = Follower(server)
    follower.open_session()
    first = follower.fetch(at(0))[0]
    assert bytes(follower.fetch()[0].records) == bytes(first.records)


async def test_a_forgotten_partition_is_silent() -> None:
    server = Server(2)
    follower = Follower(server)
    follower.open_session()
    follower.fetch(at(0, 0), at(0, 1))
    assert follower.fetch(forget=[1]) == {}
    server.append(1)
    assert follower.fetch() == {}
    assert not server.partitions[1]._replica_readers
    server.close()


async def test_a_session_that_ends_leaves_nobody_listening(server: Server) -> None:
    follower = Follower(server)
    follower.open_session()
    follower.fetch(at(0))
    assert len(server.partition._replica_readers) == 1
    follower.session = (follower.session[0], -1)
    follower.fetch(at(0))
    assert not server.partition._replica_readers


async def test_a_partition_that_goes_and_comes_again_is_found_again(server: Server) -> None:
    follower = Follower(server)
    follower.open_session()
    follower.fetch(at(0))
    server.context.partitions.remove_topic("orders")
    server.partition.resign()
    assert follower.fetch()[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    again = server._host(0, (1, 2))
    server.partitions[0] = again
    server.append()
    assert len(follower.fetch()[0].records) > 0


async def test_a_throttled_replica_keeps_its_turn() -> None:
    server = Server(isr=(1,))
    partition = server.partition
    partition.log.update_config(
        partition.log.config.__class__(
            **{
                **{
                    name: getattr(partition.log.config, name)
                    for name in partition.log.config.__dataclass_fields__
                },
                "leader_replication_throttled_replicas": ("0:1",),
            }
        )
    )
    server.throttle.set_rates(1)
    server.append()
    server.append()
    follower = Follower(server, 3)
    follower.open_session()
    first = follower.fetch(at(0, limit=1))[0]
    assert len(first.records) > 0
    data = follower.fetch(at(1, last=1)).get(0)
    assert data is None or not data.records
    server.now = 10_000.0
    assert len(follower.fetch()[0].records) > 0
    server.close()


# --- the metadata -------------------------------------------------------------------------------------------


async def test_any_replica_reads_the_metadata_and_is_known_to_live(server: Server) -> None:
    follower = Follower(server, 9, max_wait_ms=10_000)
    answer = follower.ask([at(0, epoch=-1)], topic=METADATA_TOPIC_ID.bytes)
    assert isinstance(answer, DelayedResponse)
    batch = _append_metadata(server)
    await asyncio.sleep(0)
    data = follower.read(answer)[0]
    assert (bytes(data.records), data.high_watermark) == (batch, 1)
    assert server.metadata_fetches == [(9, 100)]


@pytest.mark.parametrize("has_authorizer", [False, True])
async def test_who_may_not_be_a_broker_gets_nothing_and_is_not_taken_for_alive(
    server: Server, has_authorizer: bool
) -> None:
    """With a forged id anybody could read the metadata log, which holds credentials, keep a dead broker from
    being fenced, and move the high watermark."""
    if has_authorizer:
        server.connection.rights = Authorizer(AclIndex()).rights_of("User:mallory", "10.0.0.1")
    else:
        server.connection.listener = "CLIENTS"
    _append_metadata(server)
    server.append()
    follower = Follower(server, 2)
    for asked in (
        follower.fetch(at(0, epoch=-1), topic=METADATA_TOPIC_ID.bytes),
        follower.fetch(at(1, last=1)),
    ):
        assert asked[0].error_code == 29
        assert not asked[0].records
    assert server.metadata_fetches == []
    assert server.partition.high_watermark == 0


async def test_a_metadata_session_says_with_every_request_that_it_lives(server: Server) -> None:
    follower = Follower(server, 9)
    follower.open_session()
    follower.fetch(at(0, epoch=-1), topic=METADATA_TOPIC_ID.bytes)
    follower.fetch()
    follower.fetch()
    assert len(server.metadata_fetches) == 3


async def test_a_copy_that_is_behind_says_nothing_to_one_that_is_ahead(server: Server) -> None:
    _append_metadata(server)
    for offset, last in ((5, 0), (5, 3)):
        follower = Follower(server, 9)
        data = follower.fetch(at(offset, epoch=-1, last=last), topic=METADATA_TOPIC_ID.bytes)[0]
        assert (data.error_code, data.diverging, len(data.records)) == (0, None, 0)


def _append_metadata(server: Server) -> bytes:
    from tests.unit.log.material import append

    append(server.metadata_partition.log, b"record")
    server.metadata_partition.on_extended(1)
    return server.metadata_partition.log.active_segment.file().pread(1 << 20, 0)


async def test_a_fetch_that_has_waited_leaves_no_garbage(server: Server) -> None:
    """Thousands come and go in a second: the collector should have nothing to do with them."""
    follower = Follower(server, max_wait_ms=10_000)

    async def wait_for_one(offset: int) -> None:
        answer = follower.ask((at(offset, last=1 if offset else -1),))
        assert isinstance(answer, DelayedResponse)
        server.append()
        await asyncio.sleep(0)
        assert follower.read(answer)[0].records

    await wait_for_one(0)
    gc.collect()
    gc.disable()
    try:
        for offset in range(1, 4):
            await wait_for_one(offset)
        assert gc.collect() == 0
    finally:
        gc.enable()
