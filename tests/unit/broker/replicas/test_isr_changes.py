"""Proposals of ISRs on their way to the controller, and what becomes of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import accumulate, count, takewhile
from typing import Any
from uuid import UUID

import pytest

from headrace.broker.replicas.isr_changes import FIRST_BACKOFF, LONGEST_BACKOFF, IsrChanges
from headrace.controller.image import BrokerRegistration
from headrace.core.errors import NotController
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.core.ports_network import PeerRefused, PeerReset, PeerSilent
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_partition_request import AlterPartitionRequest
from headrace.protocol.messages.alter_partition_response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from headrace.replication.assignment import Assignment, IsrProposal
from headrace.replication.partition import Partition
from tests.unit.broker.replicas.leader_and_follower import Channel, Host, append, partition_of, until

LEADER, OTHER, THIRD = 2, 1, 3
"""The host of these tests is broker 2, and leads."""
EPOCHS = {LEADER: 500, OTHER: 501, THIRD: 502}


def registered(broker_id: int, *, fenced: bool = False) -> BrokerRegistration:
    epoch = BrokerEpoch(EPOCHS[broker_id])
    return BrokerRegistration(BrokerId(broker_id), epoch, UUID(int=0), (), None, fenced, False, (), {})


def new_host(**properties: str) -> Host:
    host = Host(None, **properties)
    host.metadata.image.brokers.update({broker_id: registered(broker_id) for broker_id in EPOCHS})
    return host


def led(index: int = 0, isr: tuple[int, ...] = (LEADER,)) -> Partition:
    partition = partition_of(LEADER, index)
    partition.assign(Assignment(LEADER, 4, 9, (LEADER, OTHER, THIRD), isr), LEADER, 0.0)
    append(partition, b"a")
    return partition


def catch_up(partition: Partition, replica: int = OTHER) -> None:
    partition.on_replica_fetch(replica, EPOCHS[replica], partition.log.end_offset, 0.0)


def answered(
    error_code: int = 0, raised: int = 1
) -> Callable[[AlterPartitionRequest], AlterPartitionResponse]:
    """A controller's answer to whatever is asked."""

    def answer(request: AlterPartitionRequest) -> AlterPartitionResponse:
        return AlterPartitionResponse(
            topics=[
                TopicData(
                    topic_id=topic.topic_id,
                    partitions=[
                        PartitionData(
                            partition_index=row.partition_index,
                            error_code=error_code,
                            partition_epoch=row.partition_epoch + raised,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


@asynccontextmanager
async def running(host: Host, *answers: Any) -> AsyncIterator[tuple[IsrChanges, Channel]]:
    channel = host.channel
    channel.answers = list(answers)
    changes = IsrChanges(host.parts)
    changes.start()
    try:
        yield changes, channel
    finally:
        await changes.stop()


def asked(request: AlterPartitionRequest) -> dict[int, list[tuple[int, int]]]:
    return {
        row.partition_index: [(member.broker_id, member.broker_epoch) for member in row.new_isr_with_epochs]
        for topic in request.topics
        for row in topic.partitions
    }


async def test_a_follower_that_caught_up_is_proposed_with_the_epoch_that_fetched() -> None:
    partition = led()
    async with running(new_host(), answered()) as (changes, channel):
        partition.on_isr_change = changes.consider
        catch_up(partition)
        await until(lambda: channel.requests)
        (request,) = channel.requests
        assert (request.broker_id, request.broker_epoch) == (LEADER, 500)
        assert asked(request) == {0: [(LEADER, 500), (OTHER, 501)]}
        row = request.topics[0].partitions[0]
        assert (row.leader_epoch, row.partition_epoch, row.leader_recovery_state) == (4, 9, 0)
        assert request.topics[0].topic_id == partition.topic_id


async def test_who_catches_up_while_another_is_proposed_is_proposed_next() -> None:
    """Also if the committed row comes before the answer, on a partition where nothing happens any more."""
    partition = led()
    host = new_host()
    host.channel.held = asyncio.Event()
    async with running(host, answered()) as (changes, channel):
        partition.on_isr_change = changes.consider
        catch_up(partition)
        await until(lambda: len(channel.requests) == 1)
        catch_up(partition, THIRD)
        replicas = (LEADER, OTHER, THIRD)
        partition.assign(Assignment(LEADER, 4, 10, replicas, (LEADER, OTHER)), LEADER, 0.0)
        host.channel.held.set()
        await until(lambda: len(channel.requests) == 2)
        assert asked(channel.requests[1]) == {0: [(LEADER, 500), (OTHER, 501), (THIRD, 502)]}


async def test_what_comes_while_one_is_in_flight_goes_together() -> None:
    partitions = [led(index) for index in range(5)]
    host = new_host()
    host.channel.held = asyncio.Event()
    async with running(host, answered()) as (changes, channel):
        for partition in partitions:
            partition.on_isr_change = changes.consider
        catch_up(partitions[0])
        await until(lambda: len(channel.requests) == 1)
        for partition in partitions[1:]:
            catch_up(partition)
            catch_up(partition)
        await asyncio.sleep(0.01)
        assert len(channel.requests) == 1
        host.channel.held.set()
        await until(lambda: len(channel.requests) == 2)
        assert list(asked(channel.requests[1])) == [1, 2, 3, 4]


async def test_a_granted_change_ends_with_the_committed_row() -> None:
    partition = led()
    host = new_host()
    async with running(host, answered()) as (changes, channel):
        partition.on_isr_change = changes.consider
        catch_up(partition)
        await until(lambda: host.runtime.metrics.replication.isr_expands == 1)
        catch_up(partition, THIRD)  # waits: the row of the first is not there yet
        await asyncio.sleep(0.01)
        assert len(channel.requests) == 1
        row = Assignment(LEADER, 4, 10, (LEADER, OTHER, THIRD), (LEADER, OTHER))
        partition.assign(row, LEADER, 0.0)
        await until(lambda: len(channel.requests) == 2)
        assert asked(channel.requests[1]) == {0: [(LEADER, 500), (OTHER, 501), (THIRD, 502)]}


@pytest.mark.parametrize("error", [PeerReset("broken"), PeerSilent("no answer")])
async def test_an_unknown_outcome_holds_the_high_watermark_and_is_asked_for_again(error: Exception) -> None:
    partition = led()
    async with running(new_host(), error, answered()) as (changes, channel):
        partition.on_isr_change = changes.consider
        catch_up(partition)
        await until(lambda: len(channel.requests) == 2)
        assert asked(channel.requests[0]) == asked(channel.requests[1])
        append(partition, b"b")
        assert partition.high_watermark == 1  # not 2: broker 1 may be a member, and has only the first


@pytest.mark.parametrize("error", [NotController("no controller is active"), PeerRefused("nobody listens")])
async def test_what_was_never_sent_holds_up_nothing(error: Exception) -> None:
    partition = led()
    host = new_host()
    async with running(host, error) as (changes, channel):
        partition.on_isr_change = changes.consider
        catch_up(partition)
        await until(lambda: channel.requests)
        await asyncio.sleep(0)
        host.metadata.image.brokers[OTHER] = registered(OTHER, fenced=True)  # nobody proposes it again
        append(partition, b"b")
        await until(lambda: partition.high_watermark == 2)


@pytest.mark.parametrize(
    ("code", "definite"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, True),
        (ErrorCode.INVALID_UPDATE_VERSION, True),
        (ErrorCode.FENCED_LEADER_EPOCH, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
        (ErrorCode.REQUEST_TIMED_OUT, False),
    ],
)
async def test_a_refusal_settles_a_proposal_and_nothing_else_does(code: ErrorCode, definite: bool) -> None:
    partition = Told()
    async with running(new_host(), answered(code)) as (changes, channel):
        changes.consider(partition)
        await until(lambda: partition.failures)
        assert partition.failures == [definite]
        assert len(channel.requests) == 1


@pytest.mark.parametrize(
    ("code", "definite"), [(ErrorCode.STALE_BROKER_EPOCH, True), (ErrorCode.NOT_CONTROLLER, False)]
)
async def test_a_refusal_of_the_whole_request(code: ErrorCode, definite: bool) -> None:
    """A controller that lost its controller in the middle of a commit cannot say what became of it."""
    partition = Told()
    async with running(new_host(), AlterPartitionResponse(error_code=code)) as (changes, _):
        changes.consider(partition)
        await until(lambda: partition.failures)
        assert partition.failures[0] == definite


async def test_a_change_that_changes_nothing_brings_no_row_to_wait_for() -> None:
    partition = Told()
    async with running(new_host(), answered(raised=0)) as (changes, _):
        changes.consider(partition)
        await until(lambda: partition.failures)
        assert partition.failures[0] is True


async def test_a_partition_that_the_answer_leaves_out_is_unknown() -> None:
    partition = Told()
    async with running(new_host(), AlterPartitionResponse()) as (changes, _):
        changes.consider(partition)
        await until(lambda: partition.failures)
        assert partition.failures[0] is False


async def test_refusals_are_repeated_ever_more_slowly() -> None:
    partition = Told()
    async with running(new_host(), answered(ErrorCode.INELIGIBLE_REPLICA)) as (changes, channel):
        began = time.monotonic()
        for _ in range(100):
            changes.consider(partition)
            await asyncio.sleep(0.005)
        # One at once, and one after each rest: each is twice as long as the one before, up to a limit.
        rests = (min(FIRST_BACKOFF * 2**number, LONGEST_BACKOFF) for number in count())
        elapsed = time.monotonic() - began
        most = 1 + sum(1 for _ in takewhile(lambda over: over <= elapsed, accumulate(rests)))
        assert 2 <= len(channel.requests) <= most


async def test_a_lost_leadership_is_not_spoken_for() -> None:
    partitions = [Told(), Told(1)]
    host = new_host()
    host.channel.held = asyncio.Event()
    async with running(host, answered()) as (changes, channel):
        changes.consider(partitions[0])
        await until(lambda: channel.requests)
        changes.consider(partitions[1])
        partitions[1].is_leader = False
        host.channel.held.set()
        await asyncio.sleep(0.02)
        assert len(channel.requests) == 1


async def test_laggards_are_looked_for() -> None:
    partition = led(isr=(LEADER, OTHER))
    host = new_host(replica_lag_time_max_ms="60", replica_fetch_wait_max_ms="10")
    host.partitions.add(partition)
    async with running(host, answered()) as (_, channel):
        await until(lambda: channel.requests)
        assert asked(channel.requests[0]) == {0: [(LEADER, 500)]}
        await until(lambda: host.runtime.metrics.replication.isr_shrinks == 1)


async def test_fenced_brokers_are_not_proposed() -> None:
    partition = led()
    host = new_host()
    host.metadata.image.brokers[OTHER] = registered(OTHER, fenced=True)
    async with running(host, answered()) as (changes, channel):
        partition.on_isr_change = changes.consider
        catch_up(partition)
        await asyncio.sleep(0.01)
        assert not channel.requests
        assert changes.broker_state(THIRD) == 502
        assert changes.broker_state(99) is None


class Told:
    """A partition that changes the same until that is granted, and notes what it is told."""

    def __init__(self, index: int = 0) -> None:
        real = led(index)
        self.topic_id = real.topic_id
        self.topic_partition = real.topic_partition
        self.is_leader = True
        self.isr = real.isr
        self.failures: list[bool] = []
        self._is_proposed = False

    def proposed_isr(self, now: float, lag_seconds: float, broker_state: Any) -> Any:
        return IsrProposal(4, 9, (LEADER, OTHER), (-1, 501))

    def propose(self, proposal: Any) -> bool:
        was_proposed, self._is_proposed = self._is_proposed, True
        return not was_proposed

    def proposal_failed(self, proposal: Any, *, definite: bool) -> None:
        self._is_proposed = False
        self.failures.append(definite)


async def test_who_is_unfenced_after_its_fetch_is_proposed_at_once() -> None:
    """It fetches nothing new on a quiet partition: without a look it would wait for half the lag time."""
    host = new_host()
    partition = led()
    host.partitions.add(partition)
    host.metadata.image.brokers[BrokerId(OTHER)] = registered(OTHER, fenced=True)
    async with running(host, answered()) as (changes, channel):
        catch_up(partition)
        changes.consider(partition)
        await asyncio.sleep(0)
        assert not channel.requests
        host.metadata.image.brokers[BrokerId(OTHER)] = registered(OTHER)
        changes.on_brokers_changed()
        await until(lambda: channel.requests)


async def test_a_stop_together_with_a_change_of_brokers_is_a_stop() -> None:
    changes = IsrChanges(new_host().parts)
    changes.start()
    for _ in range(3):
        await asyncio.sleep(0)
    changes.on_brokers_changed()
    await asyncio.sleep(0)  # the event has come, and nobody has seen it yet
    async with asyncio.timeout(15):
        await changes.stop()
