"""Reads topics as a member of a group: what is processed is committed, the rest is for the next member."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.consumer import Consumer, Fetched
from headrace.client.errors import ClientFailure
from headrace.client.group_member import GroupMember
from headrace.client.group_offsets import committed_offsets
from headrace.client.start import Start, resolve_starts
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn

COMMIT_SECONDS: Final = 5.0
_BEATS_PER_SESSION: Final = 15


class GroupConsumer:
    """Use as a context. `poll` joins when it must.

    Say with `processed` how far you are. That is committed every few seconds, before partitions are given up,
    and at the end. Whoever dies in between lets the next member read some records again, never none.
    """

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: Sequence[str],
        *,
        start: Start,
        read_committed: bool = True,
        session_timeout_ms: int = 45_000,
    ) -> None:
        self.cluster = cluster
        self.member = GroupMember(cluster, group_id, topics, session_timeout_ms=session_timeout_ms)
        self.start = start
        self.read_committed = read_committed
        self.assigned: list[TopicPartition] = []
        self._consumer: Consumer | None = None
        self._beating: asyncio.Task[None] | None = None
        self._committed: dict[TopicPartition, int] = {}
        self._processed: dict[TopicPartition, int] = {}
        self._last_commit = 0.0

    async def __aenter__(self) -> GroupConsumer:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Where nobody answers any more, the session times out, and what was not committed is read again.
        with suppress(ClientFailure):
            await self._commit()
        await self._stop_reading()
        with suppress(ClientFailure):
            await self.member.leave()

    async def poll(self) -> list[Fetched]:
        """Records, or nothing for a while, as of Consumer.poll."""
        if self._beating is not None and self._beating.done():
            self._beating.result()
            # A commit before the partitions are given up saves whoever gets them from reading twice.
            await self._commit()
            await self._stop_reading()
        if self._consumer is None:
            self._consumer = await self._start_reading()
        now = asyncio.get_running_loop().time()
        if now - self._last_commit >= COMMIT_SECONDS:
            await self._commit()
        if not self._consumer.positions:
            await asyncio.sleep(self._consumer.max_wait_ms / 1000)
            return []
        return await self._consumer.poll()

    def processed(self, partition: TopicPartition, next_offset: int) -> None:
        if partition in self.assigned:
            self._processed[partition] = next_offset

    def drop(self, partition: TopicPartition) -> None:
        """Read this one no more, until the next rebalance."""
        if self._consumer is not None:
            self._consumer.drop(partition)

    @property
    def reading(self) -> bool:
        """Whether any partition is left to read. Not before the first `poll`."""
        return self._consumer is not None and bool(self._consumer.positions)

    async def _start_reading(self) -> Consumer:
        self.assigned = await self.member.join()
        self._beating = spawn("heartbeats", self._beat(), is_awaited=True)
        self._last_commit = asyncio.get_running_loop().time()
        group_id = self.member.group_id
        known = (await committed_offsets(self.cluster, [group_id], self.assigned))[group_id]
        fresh = [partition for partition in self.assigned if partition not in known]
        positions = await resolve_starts(self.cluster, fresh, self.start) if fresh else {}
        positions.update({partition: entry.offset for partition, entry in known.items()})
        self._committed = {partition: entry.offset for partition, entry in known.items()}
        self._processed = {}
        return Consumer(self.cluster, positions, read_committed=self.read_committed)

    async def _stop_reading(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
        if self._consumer is not None:
            await self._consumer.close()
            self._consumer = None

    async def _beat(self) -> None:
        """Until the group is rebalanced."""
        while await self.member.heartbeat():
            await asyncio.sleep(self.member.session_timeout_ms / 1000 / _BEATS_PER_SESSION)

    async def _commit(self) -> None:
        self._last_commit = asyncio.get_running_loop().time()
        moved = {
            partition: offset
            for partition, offset in self._processed.items()
            if self._committed.get(partition) != offset
        }
        if await self.member.commit(moved):
            self._committed.update(moved)
