"""Sends what leaders would like their ISRs to be to the controller: one AlterPartition in flight, for all.

Each proposal is sent once. An answer settles it. Where none comes, the partition keeps the proposed members
in its maximal ISR until a committed row shows what became of them (rule 10), and it is asked again for what
it would like then. A proposal that was granted ends with the committed row, never with the answer alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from headrace.broker.replicas.backoff import Backoffs
from headrace.broker.replicas.host import LeadingPartition, ReplicaHost
from headrace.core.errors import HeadraceError, NotController
from headrace.core.ports_network import PeerRefused
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_partition_request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from headrace.protocol.messages.alter_partition_response import AlterPartitionResponse
from headrace.replication.assignment import UNKNOWN_BROKER_EPOCH, IsrProposal

MOST_AT_ONCE: Final = 1000
REQUEST_SECONDS: Final = 10.0
FIRST_BACKOFF: Final = 0.05
LONGEST_BACKOFF: Final = 1.0
PARTITIONS_PER_TURN: Final = 200

_UNKNOWN_OUTCOMES: Final = frozenset(
    (
        int(ErrorCode.UNKNOWN_SERVER_ERROR),
        int(ErrorCode.REQUEST_TIMED_OUT),
        int(ErrorCode.NETWORK_EXCEPTION),
        int(ErrorCode.KAFKA_STORAGE_ERROR),
    )
)
_MADE: Final = frozenset((int(ErrorCode.NONE), int(ErrorCode.NEW_LEADER_ELECTED)))

Key = tuple[UUID, int]


class _Wish:
    """A partition whose ISR should change; between its proposals it backs off."""

    __slots__ = ("failures", "members_before", "partition", "proposal")

    def __init__(self, partition: LeadingPartition) -> None:
        self.partition = partition
        self.members_before = 0
        """In the ISR, when the proposal was made."""
        self.proposal: IsrProposal | None = None
        self.failures = 0


class IsrChanges:
    def __init__(self, host: ReplicaHost) -> None:
        self._host = host
        self._wishes: dict[Key, _Wish] = {}
        """Waiting, in flight or backing off: each partition at most once."""
        self._waiting: dict[Key, _Wish] = {}
        self._backoffs = Backoffs(host.loop, host.timers, self._on_backed_off)
        self._wake = asyncio.Event()
        self._look = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = self._host.loop
        self._tasks = [
            spawn("ISR changes", self._send_all(), loop),
            spawn("laggards", self._look_for_laggards(), loop),
        ]

    async def stop(self) -> None:
        self._backoffs.clear()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def consider(self, partition: LeadingPartition) -> None:
        """Somebody has fetched, or lags: ask for another ISR if the partition would like one."""
        key = (partition.topic_id, partition.topic_partition.partition)
        wish = self._wishes.get(key)
        if wish is not None and wish.partition is partition:
            return  # its turn comes
        host = self._host
        lag_seconds = host.config.replica_lag_time_max_ms / 1000
        proposal = partition.wanted_isr(host.clock.monotonic(), lag_seconds, self.broker_state)
        if proposal is None or not partition.propose(proposal):
            return
        wish = self._wishes[key] = _Wish(partition)
        self._queue(wish, proposal)

    def on_brokers_changed(self) -> None:
        """Who was fenced when it fetched may be admitted now. On a quiet partition it has nothing new to say,
        so nobody but the next look at all partitions would find it."""
        self._look.set()

    def broker_state(self, broker_id: int) -> int | None:
        """Under which epoch a broker is registered; None if it may not join an ISR."""
        registration = self._host.image.brokers.get(broker_id)
        return registration.epoch if registration is not None and registration.active else None

    # --- the two tasks ---------------------------------------------------------------------------------

    async def _look_for_laggards(self) -> None:
        """Half the lag time apart, so that each is found within one and a half of it, as in Kafka."""
        while True:
            with contextlib.suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it takes an end for an event that came with it.
                async with asyncio.timeout(self._host.config.replica_lag_time_max_ms / 2000):
                    await self._look.wait()
            self._look.clear()
            for number, partition in enumerate(self._host.partitions):
                if partition.is_leader:
                    try:
                        self.consider(partition)
                    except Exception as error:  # of one partition; the others still have to be looked at
                        self._host.log.error("no look at an ISR", error=repr(error), exc_info=error)
                if number % PARTITIONS_PER_TURN == PARTITIONS_PER_TURN - 1:
                    await asyncio.sleep(0)

    async def _send_all(self) -> None:
        while True:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            batch = [self._waiting.pop(key) for key in list(self._waiting)[:MOST_AT_ONCE]]
            try:
                await self._send(batch)
            except Exception as error:  # a mistake of ours must not end all changes of ISRs
                self._host.log.error("an ISR change failed", error=repr(error), exc_info=error)
                for wish in batch:
                    self._failed(wish, definite=False)

    async def _send(self, batch: list[_Wish]) -> None:
        host = self._host
        batch = [wish for wish in batch if self._is_current(wish)]
        if not batch:
            return
        try:
            answer = await host.channel.request(
                self._request(batch), AlterPartitionResponse, timeout=REQUEST_SECONDS
            )
        except (NotController, PeerRefused):
            self._all_failed(batch, definite=True)  # it was never sent
            return
        except HeadraceError as error:
            host.log.warning("the outcome of an ISR change is not known", error=str(error))
            self._all_failed(batch, definite=False)
            return
        if answer.error_code:
            # Refused as a whole. Only a stale incarnation is known to be refused before anything is tried.
            stale = answer.error_code == ErrorCode.STALE_BROKER_EPOCH
            self._all_failed(batch, definite=stale)
            return
        rows = {
            (topic.topic_id, row.partition_index): row for topic in answer.topics for row in topic.partitions
        }
        for wish in batch:
            row = rows.get(_key(wish))
            if row is None:
                self._failed(wish, definite=False)
            else:
                self._on_answer(wish, row.error_code, row.partition_epoch)

    def _request(self, batch: Iterable[_Wish]) -> AlterPartitionRequest:
        host = self._host
        topics: dict[UUID, list[PartitionData]] = {}
        for wish in batch:
            proposal = wish.proposal
            assert proposal is not None
            members = [
                BrokerState(broker_id=member, broker_epoch=self._epoch_of(member, epoch))
                for member, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
            ]
            topics.setdefault(wish.partition.topic_id, []).append(
                PartitionData(
                    partition_index=wish.partition.topic_partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=members,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=host.broker_id,
            broker_epoch=host.broker_epoch,
            topics=[TopicData(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()],
        )

    def _epoch_of(self, member: int, epoch: int) -> int:
        if epoch == UNKNOWN_BROKER_EPOCH and member == self._host.broker_id:
            return self._host.broker_epoch
        return epoch

    # --- what became of it -------------------------------------------------------------------------------

    def _on_answer(self, wish: _Wish, error_code: int, partition_epoch: int) -> None:
        proposal = wish.proposal
        assert proposal is not None
        if error_code in _UNKNOWN_OUTCOMES:
            self._failed(wish, definite=False)
        elif error_code not in _MADE or partition_epoch <= proposal.partition_epoch:
            # Refused; or nothing had to change, so that no row will come to settle it.
            self._failed(wish, definite=True)
        else:
            counters = self._host.metrics.replication
            if len(proposal.isr) < wish.members_before:
                counters.isr_shrinks += 1
            elif len(proposal.isr) > wish.members_before:
                counters.isr_expands += 1
            self._forget(wish)
            if wish.partition.is_leader:
                # Its row may have come before the answer: who caught up meanwhile has been put off by this.
                self.consider(wish.partition)

    def _all_failed(self, batch: list[_Wish], *, definite: bool) -> None:
        for wish in batch:
            self._failed(wish, definite=definite)

    def _failed(self, wish: _Wish, *, definite: bool) -> None:
        """Tell the partition, and ask it again after a while."""
        proposal, wish.proposal = wish.proposal, None
        if proposal is not None:
            wish.partition.proposal_failed(proposal, definite=definite)
        wish.failures += 1
        self._backoffs.add(wish, min(FIRST_BACKOFF * 2.0 ** min(wish.failures - 1, 16), LONGEST_BACKOFF))

    def _on_backed_off(self, over: list[Any]) -> None:
        for wish in over:
            self._again(wish)

    def _again(self, wish: _Wish) -> None:
        partition, host = wish.partition, self._host
        proposal = None
        if partition.is_leader:
            lag_seconds = host.config.replica_lag_time_max_ms / 1000
            proposal = partition.wanted_isr(host.clock.monotonic(), lag_seconds, self.broker_state)
        if proposal is None or not partition.propose(proposal):
            self._forget(wish)
            return
        self._queue(wish, proposal)

    def _queue(self, wish: _Wish, proposal: IsrProposal) -> None:
        wish.proposal = proposal
        wish.members_before = len(wish.partition.isr)
        self._waiting[_key(wish)] = wish
        self._wake.set()

    def _is_current(self, wish: _Wish) -> bool:
        """False if the partition lost its leadership while the wish waited: then there is nothing to send."""
        if wish.partition.is_leader and self._wishes.get(_key(wish)) is wish:
            return True
        self._forget(wish)
        return False

    def _forget(self, wish: _Wish) -> None:
        if self._wishes.get(_key(wish)) is wish:
            del self._wishes[_key(wish)]


def _key(wish: _Wish) -> Key:
    return wish.partition.topic_id, wish.partition.topic_partition.partition
