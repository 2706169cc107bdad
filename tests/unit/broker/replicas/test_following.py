"""A follower's fetcher against a leader in memory: real partitions on both sides, no broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from headrace.broker.replicas import fetch_wire, fetcher
from headrace.broker.replicas.manager import ReplicaManager
from headrace.core.errors import StorageError
from headrace.core.ports_network import PeerRefused
from headrace.protocol.error_codes import ErrorCode
from headrace.replication.partition import Partition
from tests.unit.broker.replicas.leader_and_follower import (
    EPOCH,
    FOLLOWER,
    LEADER,
    Host,
    MemoryLeader,
    append,
    partition_of,
    row,
    until,
)
from tests.virtual_time import in_virtual_time


def lead(partition: Partition, epoch: int = 0, version: int | None = None) -> Partition:
    partition.assign(row(LEADER, epoch, version=version), LEADER, 0.0)
    return partition


def follow(partition: Partition, epoch: int = 0) -> Partition:
    partition.assign(row(LEADER, epoch), FOLLOWER, 0.0)
    return partition


@asynccontextmanager
async def managed(host: Host) -> AsyncIterator[ReplicaManager]:
    manager = host.replicas = ReplicaManager(host.parts)
    manager.start()
    try:
        yield manager
    finally:
        await manager.stop()


def contents(partition: Partition) -> bytes:
    found = partition.read_as_replica(partition.log.log_start_offset, 1 << 24)
    return found.file.pread(found.length, found.position)


async def test_a_follower_copies_its_leader_and_moves_the_high_watermark() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    append(theirs, b"before")
    leader = MemoryLeader(theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: theirs.high_watermark == 1)
        for number in range(20):
            append(theirs, b"value %d" % number)
            leader.poke()
            await until(lambda: theirs.high_watermark == theirs.log.end_offset)
        assert contents(mine) == contents(theirs)
        assert mine.high_watermark >= 19
        assert mine.metrics.replication_bytes_in == len(contents(theirs))
    assert leader.dials == 1
    assert {request.replica_id for request in leader.requests} == {FOLLOWER}
    assert {request.replica_epoch for request in leader.requests} == {EPOCH}
    assert [request.session_epoch for request in leader.requests] == list(range(len(leader.requests)))
    assert not leader.links[0].is_open


async def test_many_partitions_share_a_fetch_and_only_changes_are_named() -> None:
    mine = [follow(partition_of(FOLLOWER, index)) for index in range(120)]
    theirs = [lead(partition_of(LEADER, index)) for index in range(120)]
    leader = MemoryLeader(*theirs)
    async with managed(Host(leader)) as manager:
        for each in theirs:
            append(each, b"x" * 100)
        for each in mine:
            manager.follow(each)
        await until(lambda: all(each.high_watermark == 1 for each in theirs))
        rounds = len(leader.requests)
        append(theirs[7], b"more")
        leader.poke()
        await until(lambda: theirs[7].high_watermark == 2)
        named = [
            item.partition
            for request in leader.requests[rounds:]
            for _, rows in request.topics
            for item in rows
        ]
        assert named == [7]
        assert all(contents(one) == contents(other) for one, other in zip(mine, theirs, strict=True))


async def test_logs_that_part_ways_are_reconciled() -> None:
    mine, theirs = partition_of(FOLLOWER), partition_of(LEADER)
    mine.assign(row(FOLLOWER, 0, isr=(2,)), FOLLOWER, 0.0)
    append(mine, b"a", b"b", b"c")  # in epoch 0, which nobody else saw
    lead(theirs, 0, version=0)
    append(theirs, b"a")
    follow(mine, 1)
    lead(theirs, 1)
    append(theirs, b"new")
    leader = MemoryLeader(theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: theirs.high_watermark == 2)
        assert contents(mine) == contents(theirs)


async def test_an_answer_that_comes_after_the_end_of_following_is_dropped() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    other_mine, other_theirs = follow(partition_of(FOLLOWER, 1)), lead(partition_of(LEADER, 1))
    leader = MemoryLeader(theirs, other_theirs)
    leader.heeds_nudges = False
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        manager.follow(other_mine)
        await until(lambda: len(leader.requests) == 2)  # the second waits for data
        append(theirs, b"late")
        manager.unfollow(mine)
        leader.poke()
        append(other_theirs, b"wanted")
        leader.poke()
        await until(lambda: other_mine.log.end_offset == 1)
        assert mine.log.end_offset == 0
        assert sum(bool(request.forgotten) for request in leader.requests) == 1


async def test_an_answer_of_an_earlier_epoch_is_dropped() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    leader.heeds_nudges = False
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        append(theirs, b"of epoch 0")
        follow(mine, 1)
        manager.follow(mine)
        leader.poke()  # the answer in epoch 0 arrives
        await until(lambda: len(leader.requests) >= 3)
        assert mine.log.end_offset == 0
        lead(theirs, 1)
        await until(lambda: mine.log.end_offset == 1)  # asked for again, in epoch 1


async def test_a_row_that_changes_nothing_for_a_fetch_does_not_disturb_it() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        mine.assign(row(LEADER, 0, isr=(1, 2, 3), version=3), FOLLOWER, 0.0)
        manager.follow(mine)
        await asyncio.sleep(0.02)
        assert len(leader.requests) == 2


async def test_an_answer_is_taken_though_the_log_start_was_raised_meanwhile() -> None:
    """The leader says a log start once. Who dropped it kept its own, and was not admitted (2000716)."""
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    append(theirs, b"a", b"b")
    append(theirs, b"c")
    leader = MemoryLeader(theirs)
    leader.heeds_nudges = False
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 3)  # which waits
        assert mine.high_watermark == 3
        mine.log.delete_records_before(1)
        mine.log.durable_start = 1  # its checkpoint was written
        manager.follow(mine)
        theirs.delete_records_before(2)
        leader.poke()  # the answer to what was asked before
        await until(lambda: mine.log.log_start_offset == 2)
        await until(lambda: len(leader.requests) == 4)
        ((_, (named,)),) = leader.requests[3].topics
        assert (named.fetch_offset, named.log_start_offset) == (3, 1)


async def test_a_partition_that_comes_while_a_fetch_waits_is_asked_for_at_once() -> None:
    """Without it each failover would take the longest wait of a fetch."""
    mine = [follow(partition_of(FOLLOWER, index)) for index in range(2)]
    theirs = [lead(partition_of(LEADER, index)) for index in range(2)]
    leader = MemoryLeader(*theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine[0])
        await until(lambda: len(leader.requests) == 2)
        append(theirs[1], b"a")
        manager.follow(mine[1])
        await until(lambda: mine[1].log.end_offset == 1)


async def test_a_broken_link_is_made_anew_with_a_new_session() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        leader.links[0].close()
        append(theirs, b"a")
        await until(lambda: mine.log.end_offset == 1)
        assert leader.dials == 2
        assert leader.requests[2].session_epoch == 0


def test_a_leader_that_refuses_is_tried_again_and_at_once_when_it_is_heard_of() -> None:
    async def test() -> None:
        mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
        leader = MemoryLeader(theirs)
        leader.failure = PeerRefused("nobody listens")
        async with managed(Host(leader)) as manager:
            manager.follow(mine)
            await until(lambda: leader.dials >= 4)  # 50 ms, 100 ms, 200 ms, and then 400 ms
            leader.failure = None
            append(theirs, b"a")
            before = asyncio.get_running_loop().time()
            manager.on_brokers_changed()
            await until(lambda: mine.log.end_offset == 1)
            assert asyncio.get_running_loop().time() - before < 0.1

    in_virtual_time(test)


async def test_a_leader_without_an_address_is_waited_for() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    host = Host(leader)
    host.metadata.addresses.clear()
    async with managed(host) as manager:
        manager.follow(mine)
        await asyncio.sleep(0.01)
        assert leader.dials == 0
        host.metadata.addresses[LEADER] = ("leader", 1)
        manager.on_brokers_changed()
        await until(lambda: len(leader.requests) == 2)


async def test_a_leader_that_moves_is_dialled_at_its_new_address() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    host = Host(leader)
    async with managed(host) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        manager.on_brokers_changed()  # of somebody else
        assert leader.links[0].is_open
        host.metadata.addresses[LEADER] = ("elsewhere", 1)
        manager.on_brokers_changed()
        await until(lambda: leader.dials == 2)


async def test_a_silent_leader_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_wire, "WATCH_SECONDS", 0.02)
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    leader.is_silent = True
    host = Host(leader, replica_socket_timeout_ms="100", replica_fetch_wait_max_ms="0")
    monkeypatch.setattr(fetcher, "longest_wait", lambda config: 0.1)
    async with managed(host) as manager:
        manager.follow(mine)
        await until(lambda: leader.dials == 2)
        leader.is_silent = False
        await until(lambda: len(leader.requests) >= 2)


async def test_a_lost_session_is_replaced() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        leader.forget_sessions()
        append(theirs, b"a")
        leader.poke()
        await until(lambda: theirs.high_watermark == 1)
        assert leader.dials == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
async def test_a_refused_request_is_followed_by_a_full_one(code: ErrorCode) -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    leader.refusal = code
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        append(theirs, b"a")
        await until(lambda: theirs.high_watermark == 1)
        assert leader.requests[1].session_epoch == 0


def test_a_partition_with_an_error_rests_and_the_others_go_on() -> None:
    async def test() -> None:
        mine = [follow(partition_of(FOLLOWER, index)) for index in range(2)]
        theirs = [lead(partition_of(LEADER, index)) for index in range(2)]
        leader = MemoryLeader(*theirs)
        leader.errors[0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        async with managed(Host(leader)) as manager:
            for each in mine:
                manager.follow(each)
            for _ in range(10):
                append(theirs[1], b"a")
                leader.poke()
                await until(lambda: theirs[1].high_watermark == theirs[1].log.end_offset)
            asked = len(leader.positions(0))
            await asyncio.sleep(0.25)
            assert asked < len(leader.positions(0)) <= asked + 5  # it rests ever longer, up to 100 ms
            leader.errors.clear()
            append(theirs[0], b"a")
            await until(lambda: mine[0].log.end_offset == 1)

    in_virtual_time(test)


async def test_a_leader_that_has_yet_to_hear_of_it_is_asked_again_soon() -> None:
    mine, theirs = follow(partition_of(FOLLOWER), 1), lead(partition_of(LEADER), 0)
    append(theirs, b"a")
    leader = MemoryLeader(theirs)
    async with managed(Host(leader, replica_fetch_backoff_ms="10000")) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) >= 1)
        lead(theirs, 1)
        await until(lambda: theirs.high_watermark == 1, 5.0)


async def test_what_must_be_synced_is_reported_after_the_sync() -> None:
    mine = follow(partition_of(FOLLOWER, flush_messages=1))
    theirs = lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    host = Host(leader)
    flusher = host.flusher
    async with managed(host) as manager:
        manager.follow(mine)
        append(theirs, b"a")
        await until(lambda: flusher.asked)
        await asyncio.sleep(0.02)
        assert mine.log.end_offset == 1
        assert theirs.high_watermark == 0
        assert leader.positions() == [0]
        flusher.finish()
        await until(lambda: theirs.high_watermark == 1)
        assert leader.positions() == [0, 1]
        assert mine.log.recovery_point == 1


async def test_a_failed_sync_is_never_reported() -> None:
    mine = follow(partition_of(FOLLOWER, flush_messages=1))
    other_mine, other_theirs = follow(partition_of(FOLLOWER, 1)), lead(partition_of(LEADER, 1))
    theirs = lead(partition_of(LEADER))
    leader = MemoryLeader(theirs, other_theirs)
    host = Host(leader)
    flusher = host.flusher
    async with managed(host) as manager:
        manager.follow(mine)
        manager.follow(other_mine)
        append(theirs, b"a")
        await until(lambda: flusher.asked)
        mine.log.directory.fail(OSError(5, "Input/output error"), "sync")
        flusher.finish(StorageError("the disk is gone"))
        append(other_theirs, b"a")
        leader.poke()
        await until(lambda: other_theirs.high_watermark == 1)
        await asyncio.sleep(0.1)
        assert theirs.high_watermark == 0
        assert set(leader.positions()) == {0}


async def test_a_sync_that_fails_after_the_end_of_following_brings_nothing_back() -> None:
    """Such as one that was overtaken by a cut: the partition follows another leader, in another epoch."""
    mine, other_mine = follow(partition_of(FOLLOWER, flush_messages=1)), follow(partition_of(FOLLOWER, 1))
    theirs, other_theirs = lead(partition_of(LEADER)), lead(partition_of(LEADER, 1))
    leader = MemoryLeader(theirs, other_theirs)
    host = Host(leader)
    flusher = host.flusher
    async with managed(host) as manager:
        manager.follow(mine)
        manager.follow(other_mine)
        append(theirs, b"a")
        await until(lambda: flusher.asked)
        manager.unfollow(mine)
        mine.log.flush()
        mine.assign(row(3, 1), FOLLOWER, 0.0)
        assert mine.fetch_position() is not None
        flusher.finish(StorageError("cut off"))
        await asyncio.sleep(0.1)
        append(other_theirs, b"a")
        leader.poke()
        await until(lambda: other_theirs.high_watermark == 1)
        assert leader.positions() == [0]


async def test_a_leader_that_answers_again_is_not_suspect_any_more() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    host = Host(leader)
    async with managed(host) as manager:
        manager.follow(mine)
        await until(lambda: leader.links)
        append(theirs, b"a")
        leader.poke()
        await until(lambda: theirs.high_watermark == 1)
        leader.links[0].close()
        append(theirs, b"b")
        await until(lambda: theirs.high_watermark == 2)
        assert host.suspicions.seen == [("reached", LEADER), ("lost", LEADER), ("reached", LEADER)]


async def test_a_failing_disk_of_one_partition_does_not_hold_up_the_others() -> None:
    mine = [follow(partition_of(FOLLOWER, index)) for index in range(2)]
    theirs = [lead(partition_of(LEADER, index)) for index in range(2)]
    leader = MemoryLeader(*theirs)
    async with managed(Host(leader)) as manager:
        for each in mine:
            manager.follow(each)
        await until(lambda: len(leader.requests) == 2)
        mine[0].log.directory.fail(OSError(5, "Input/output error"), "write")
        for each in theirs:
            append(each, b"a")
        leader.poke()
        await until(lambda: theirs[1].high_watermark == 1)
        assert theirs[0].high_watermark == 0


async def test_a_throttled_replica_that_is_not_in_sync_waits() -> None:
    mine = [partition_of(FOLLOWER, index) for index in range(2)]
    theirs = [partition_of(LEADER, index) for index in range(2)]
    mine[0] = partition_of(FOLLOWER, 0, follower_replication_throttled_replicas=("*",))
    for index, isr in ((0, (1,)), (1, (1, 2))):
        mine[index].assign(row(LEADER, 0, isr=isr), FOLLOWER, 0.0)
        theirs[index].assign(row(LEADER, 0, isr=isr), LEADER, 0.0)
    leader = MemoryLeader(*theirs)
    host = Host(leader)
    limited = host.runtime.config.with_dynamic({}, {"follower.replication.throttled.rate": "1000"})
    host.runtime.update_config(limited)
    async with managed(host) as manager:
        for each in mine:
            manager.follow(each)
        append(theirs[0], b"x" * 1300)
        await until(lambda: mine[0].log.end_offset == 1)
        began = asyncio.get_running_loop().time()
        append(theirs[0], b"y")
        append(theirs[1], b"z")
        leader.poke()
        await until(lambda: theirs[1].high_watermark == 1)
        assert mine[0].log.end_offset == 1
        await until(lambda: mine[0].log.end_offset == 2)
        assert asyncio.get_running_loop().time() - began > 0.2


async def test_fetchers_end_when_nobody_follows() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    async with managed(Host(leader)) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        manager.unfollow(mine)
        await until(lambda: not leader.links[0].is_open)
        assert manager.following == 0
        manager.unfollow(mine)  # twice does no harm
        manager.follow(mine)
        await until(lambda: leader.dials == 2)


async def test_a_restarted_session_says_its_new_broker_epoch() -> None:
    mine, theirs = follow(partition_of(FOLLOWER)), lead(partition_of(LEADER))
    leader = MemoryLeader(theirs)
    host = Host(leader)
    async with managed(host) as manager:
        manager.follow(mine)
        await until(lambda: len(leader.requests) == 2)
        host.node.broker_epoch = EPOCH + 1
        append(theirs, b"a")
        leader.poke()
        await until(lambda: leader.requests[-1].replica_epoch == EPOCH + 1)


async def test_partitions_are_spread_over_several_fetchers() -> None:
    mine = [follow(partition_of(FOLLOWER, index)) for index in range(4)]
    theirs = [lead(partition_of(LEADER, index)) for index in range(4)]
    leader = MemoryLeader(*theirs)
    async with managed(Host(leader, num_replica_fetchers="2")) as manager:
        for each in mine:
            manager.follow(each)
        for each in theirs:
            append(each, b"a")
        await until(lambda: leader.dials == 2)
        leader.poke()
        await until(lambda: all(each.high_watermark == 1 for each in theirs))
