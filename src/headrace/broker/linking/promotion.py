"""The end of a copy: what is open in it is aborted, then the partition takes records of this cluster's
producers.

Each leader does it for its partition, in one leader epoch, and may die at any step: the next one finds in its
log what is still open, and in the metadata whether the partition is open to producers already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.markers import end_batch
from headrace.controller.link_image import OPENED
from headrace.controller.links import LARGEST_PRODUCER_ID
from headrace.core.errors import HeadraceError
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.batch import read_header
from headrace.replication.partition import ACKS_ALL, Partition

if TYPE_CHECKING:
    from headrace.broker.linking.host import LinkHost
    from headrace.broker.linking.reports import Reports

PAUSE_SECONDS: Final = 0.2


class Promotion:
    def __init__(self, host: LinkHost, reports: Reports, partition: Partition) -> None:
        self._host = host
        self._reports = reports
        self._partition = partition
        self.leader_epoch = partition.leader_epoch
        self.error: str | None = None
        """Why it does not get on, for people."""

    async def run(self) -> None:
        """Until the metadata says that it is open; whoever follows the metadata ends this task."""
        while self._partition.is_leader and self._partition.leader_epoch == self.leader_epoch:
            try:
                await self._once()
                self.error = None
            except (HeadraceError, PeerUnavailable) as error:
                self.error = str(error)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _once(self) -> None:
        partition = self._partition
        self._abort_open_transactions()
        end = partition.log.end_offset
        await self._committed(end)
        if partition.log.end_offset != end:
            return  # another end was written meanwhile: look again
        name = partition.topic_partition
        await self._reports.tell(
            name.topic,
            f"{OPENED}{name.partition}",
            f"{self.leader_epoch}:{end}:{above_all(each.producer_id for each in partition.log.producers)}",
        )

    def _abort_open_transactions(self) -> None:
        """In the producer's own epoch: no coordinator here knows it, and nobody will ask for the next one."""
        partition = self._partition
        now_ms = self._host.runtime.clock.wall_ms()
        for entry in [each for each in partition.log.producers if each.txn_first_offset >= 0]:
            batch = end_batch(
                (entry.producer_id, entry.epoch),
                coordinator_epoch=max(entry.coordinator_epoch, 0),
                committed=False,
                now_ms=now_ms,
            )
            partition.append(batch, read_header(batch), acks=ACKS_ALL, now_ms=now_ms, from_client=False)
            self._host.runtime.log.info(
                "open transaction of the source aborted",
                partition=str(partition.topic_partition),
                producer_id=entry.producer_id,
            )

    async def _committed(self, end: int) -> None:
        partition = self._partition
        if partition.must_sync_before_ack:
            self._host.flusher.flush(partition.log)
        waiter = _Waiter(self._host.runtime.loop)
        partition.await_commit(end, waiter)
        await waiter.decided


def above_all(producer_ids: Iterable[int]) -> int:
    """The least id above those that a cluster can have handed out. Any client over there can write a batch
    with a larger one, and the controller would not take the opening."""
    return 1 + max((each for each in producer_ids if each < LARGEST_PRODUCER_ID), default=-1)


class _Waiter:
    """Implements replication.waiting.CommitWaiter."""

    __slots__ = ("decided",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.decided: asyncio.Future[None] = loop.create_future()

    def on_decided(self, _token: int, error: HeadraceError | None) -> None:
        if self.decided.done():
            return
        if error is None:
            self.decided.set_result(None)
        else:
            self.decided.set_exception(error)
