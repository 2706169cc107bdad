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


class _IsrChange:
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
        self._changes: dict[Key, _IsrChange] = {}
        """Waiting, in flight or backing off: each partition at most once."""
        self._waiting: dict[Key, _IsrChange] = {}
        self._backoffs = Backoffs(host.runtime.loop, host.runtime.timers, self._on_backed_off)
        self._wake = asyncio.Event()
        self._look = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = self._host.runtime.loop
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
        change = self._changes.get(key)
        if change is not None and change.partition is partition:
            return  # its turn comes
        host = self._host
        lag_seconds = host.runtime.config.replica_lag_time_max_ms / 1000
        proposal = partition.proposed_isr(host.runtime.clock.monotonic(), lag_seconds, self.broker_state)
        if proposal is None or not partition.propose(proposal):
            return
        change = self._changes[key] = _IsrChange(partition)
        self._queue(change, proposal)

    def on_brokers_changed(self) -> None:
        """Who was fenced when it fetched may be admitted now. On a quiet partition it has nothing new to say,
        so nobody but the next look at all partitions would find it."""
        self._look.set()

    def broker_state(self, broker_id: int) -> int | None:
        """Under which epoch a broker is registered; None if it may not join an ISR."""
        registration = self._host.metadata.image.brokers.get(broker_id)
        return registration.epoch if registration is not None and registration.active else None

    # --- the two tasks ---------------------------------------------------------------------------------

    async def _look_for_laggards(self) -> None:
        """Half the lag time apart, so that each is found within one and a half of it, as in Kafka."""
        while True:
            with contextlib.suppress(TimeoutError):
                # Not wait_for: in Python 3.11 it takes an end for an event that came with it.
                async with asyncio.timeout(self._host.runtime.config.replica_lag_time_max_ms / 2000):
                    await self._look.wait()
            self._look.clear()
            for number, partition in enumerate(self._host.partitions):
                if partition.is_leader:
                    try:
                        self.consider(partition)
                    except Exception as error:  # of one partition; the others still have to be looked at
                        self._host.runtime.log.error("ISR check failed", error=repr(error), exc_info=error)
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
                self._host.runtime.log.error("ISR change failed", error=repr(error), exc_info=error)
                for change in batch:
                    self._failed(change, definite=False)

    async def _send(self, batch: list[_IsrChange]) -> None:
        host = self._host
        batch = [change for change in batch if self._is_current(change)]
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
            host.runtime.log.warning("ISR change outcome unknown", error=str(error))
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
        for change in batch:
            row = rows.get(_key(change))
            if row is None:
                self._failed(change, definite=False)
            else:
                self._on_answer(change, row.error_code, row.partition_epoch)

    def _request(self, batch: Iterable[_IsrChange]) -> AlterPartitionRequest:
        host = self._host
        topics: dict[UUID, list[PartitionData]] = {}
        for change in batch:
            proposal = change.proposal
            assert proposal is not None
            members = [
                BrokerState(broker_id=member, broker_epoch=self._epoch_of(member, epoch))
                for member, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
            ]
            topics.setdefault(change.partition.topic_id, []).append(
                PartitionData(
                    partition_index=change.partition.topic_partition.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=members,
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=host.runtime.broker_id,
            broker_epoch=host.node.broker_epoch,
            topics=[TopicData(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()],
        )

    def _epoch_of(self, member: int, epoch: int) -> int:
        if epoch == UNKNOWN_BROKER_EPOCH and member == self._host.runtime.broker_id:
            return self._host.node.broker_epoch
        return epoch

    # --- what became of it -------------------------------------------------------------------------------

    def _on_answer(self, change: _IsrChange, error_code: int, partition_epoch: int) -> None:
        proposal = change.proposal
        assert proposal is not None
        if error_code in _UNKNOWN_OUTCOMES:
            self._failed(change, definite=False)
        elif error_code not in _MADE or partition_epoch <= proposal.partition_epoch:
            # Refused; or nothing had to change, so that no row will come to settle it.
            self._failed(change, definite=True)
        else:
            counters = self._host.runtime.metrics.replication
            if len(proposal.isr) < change.members_before:
                counters.isr_shrinks += 1
            elif len(proposal.isr) > change.members_before:
                counters.isr_expands += 1
            self._forget(change)
            if change.partition.is_leader:
                # Its row may have come before the answer: who caught up meanwhile has been put off by this.
                self.consider(change.partition)

    def _all_failed(self, batch: list[_IsrChange], *, definite: bool) -> None:
        for change in batch:
            self._failed(change, definite=definite)

    def _failed(self, change: _IsrChange, *, definite: bool) -> None:
        """Tell the partition, and ask it again after a while."""
        proposal, change.proposal = change.proposal, None
        if proposal is not None:
            change.partition.proposal_failed(proposal, definite=definite)
        change.failures += 1
        self._backoffs.add(change, min(FIRST_BACKOFF * 2.0 ** min(change.failures - 1, 16), LONGEST_BACKOFF))

    def _on_backed_off(self, over: list[Any]) -> None:
        for change in over:
            self._again(change)

    def _again(self, change: _IsrChange) -> None:
        partition, host = change.partition, self._host
        proposal = None
        if partition.is_leader:
            lag_seconds = host.runtime.config.replica_lag_time_max_ms / 1000
            proposal = partition.proposed_isr(host.runtime.clock.monotonic(), lag_seconds, self.broker_state)
        if proposal is None or not partition.propose(proposal):
            self._forget(change)
            return
        self._queue(change, proposal)

    def _queue(self, change: _IsrChange, proposal: IsrProposal) -> None:
        change.proposal = proposal
        change.members_before = len(change.partition.isr)
        self._waiting[_key(change)] = change
        self._wake.set()

    def _is_current(self, change: _IsrChange) -> bool:
        """False if the partition lost its leadership while the change waited: then there is nothing to
        send."""
        if change.partition.is_leader and self._changes.get(_key(change)) is change:
            return True
        self._forget(change)
        return False

    def _forget(self, change: _IsrChange) -> None:
        if self._changes.get(_key(change)) is change:
            del self._changes[_key(change)]


def _key(change: _IsrChange) -> Key:
    return change.partition.topic_id, change.partition.topic_partition.partition
