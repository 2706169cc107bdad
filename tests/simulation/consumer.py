"""A consumer as client libraries have it: every partition is assigned, and read in order from its leader."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from headrace.client.visible import records_from
from headrace.core.ports import Buffer
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.messages.list_offsets_response import ListOffsetsResponse
from headrace.testing.simulation.virtual_time import SimulationFailed
from tests.checker.history import Assign, History, Poll, Value
from tests.simulation.client import PAUSE_SECONDS, TOPIC, SimulatedClient
from tests.simulation.cluster import SimulatedCluster

FETCH_VERSION: Final = 12
LIST_OFFSETS_VERSION: Final = 7
WAIT_MS: Final = 400
FETCH_BYTES: Final = 1 << 20
SMALL_FETCH_BYTES: Final = 200
_LATEST: Final = -1
_EARLIEST: Final = -2
_READ_COMMITTED: Final = 1


class Judge(Protocol):
    """Hears what a consumer is given."""

    def on_fetched(self, key: tuple[str, int], data: Buffer) -> None: ...
    def on_read(self, key: tuple[str, int], offset: int) -> None: ...
    def condemned(self) -> dict[str, int]: ...


class SimulatedConsumer:
    def __init__(
        self,
        cluster: SimulatedCluster,
        name: str,
        partitions: int,
        history: History,
        judge: Judge,
        *,
        small: bool = False,
    ) -> None:
        self.client = SimulatedClient(cluster, name)
        self._history = history
        self._judge = judge
        self._bytes = SMALL_FETCH_BYTES if small else FETCH_BYTES
        self.positions = dict.fromkeys(range(partitions), 0)
        self._looked_in: dict[int, int] = {}
        self._deleted: list[int] = []
        """Partitions in which what it would have read next is deleted."""
        self._is_over = False
        self.task: asyncio.Task[None] | None = None

    @property
    def is_done(self) -> bool:
        return self.task is not None and self.task.done()

    def finish(self) -> None:
        self._is_over = True

    # --- while the cluster suffers ---

    def start(self) -> None:
        self.task = self.client.run(self._follow())

    async def _follow(self) -> None:
        """Reads what comes, from the beginning, as long as it is let."""
        self._assign()
        while not self._is_over:
            if not await self._poll_some(list(self.positions)):
                await asyncio.sleep(PAUSE_SECONDS)
            for partition, epoch in list(self.client.leader_epochs.items()):
                if self._looked_in.get(partition) != epoch:
                    self._looked_in[partition] = epoch
                    await self._look_at_the_end(partition, epoch)

    async def _look_at_the_end(self, partition: int, epoch: int) -> None:
        """Rule 5: whoever leads now may not say that the log ends before what was read of it already.

        It is asked as soon as its epoch is heard of, when it has hardly begun to lead.
        """
        position, leader = self.positions[partition], self.client.leaders.get(partition)
        if leader is None:
            return
        end = await self._ask_for_offset(leader, partition, _LATEST, epoch)
        if end is not None and end < position:
            raise SimulationFailed(
                f"EndIsBehindNothingRead: broker {leader}, leader in epoch {epoch} of {TOPIC}-{partition},"
                f" says that it ends at {end}; {self.client.name} has read up to {position}"
            )

    def _assign(self) -> None:
        keys = tuple(f"{TOPIC}-{partition}" for partition in self.positions)
        operation = self._history.invoke(self.client.name, "assign", [Assign(keys, from_beginning=True)])
        self._history.ok(operation)

    # --- at the end ---

    def start_final_reads(self) -> None:
        """Everything once more, from the beginning to the end that each leader tells."""
        self.task = self.client.run(self._read_to_the_end())

    async def _read_to_the_end(self) -> None:
        self._assign()
        ends = {partition: await self._end_of(partition) for partition in self.positions}
        while unread := [partition for partition, end in ends.items() if self.positions[partition] < end]:
            # Not of the others: a leader that has nothing more holds each fetch for WAIT_MS, and the reader
            # came to no end in its time where segments are short.
            if not await self._poll_some(unread):
                await asyncio.sleep(PAUSE_SECONDS)

    async def _end_of(self, partition: int) -> int:
        while True:
            leader = await self.client.leader(partition)
            end = await self._ask_for_offset(leader, partition, _LATEST)
            if end is not None:
                return end
            self.client.leaders.pop(partition, None)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask_for_offset(self, leader: int, partition: int, which: int, epoch: int = -1) -> int | None:
        wanted = ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=which)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=_READ_COMMITTED,
            topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])],
        )
        try:
            reply = await self.client.ask(leader, request, ListOffsetsResponse, LIST_OFFSETS_VERSION)
        except PeerUnavailable:
            return None
        found = reply.topics[0].partitions[0]
        return found.offset if found.error_code == ErrorCode.NONE else None

    # --- polling ---

    async def _poll_some(self, wanted: list[int]) -> bool:
        """One fetch from the leader of one of `wanted`. False if there is a reason to pause."""
        client = self.client
        leader = await client.leader(client.random.choice(wanted))
        partitions = [partition for partition in self.positions if client.leaders.get(partition) == leader]
        operation = self._history.invoke(client.name, "poll", [Poll()])
        try:
            reply = await client.ask(leader, self._request(partitions), FetchResponse, FETCH_VERSION)
        except PeerUnavailable as error:
            self._history.fail(operation, type(error).__name__)
            client.leaders.clear()
            return False
        found, is_good = self._read(reply)
        self._history.ok(operation, [Poll(found)])
        for partition in self._deleted:
            await self._begin_again(leader, partition)
        self._deleted.clear()
        return is_good

    def _read(self, reply: FetchResponse) -> tuple[dict[str, list[tuple[int, Value]]], bool]:
        found: dict[str, list[tuple[int, Value]]] = {}
        is_good = not reply.error_code
        for topic in reply.responses:
            for data in topic.partitions:
                partition = data.partition_index
                if data.error_code:
                    self._on_error(partition, data.error_code)
                    is_good = False
                    continue
                self._judge.on_fetched((TOPIC, partition), data.records or b"")
                aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
                records, position = records_from(data.records or b"", self.positions[partition], aborted)
                if records:
                    self._judge.on_read((TOPIC, partition), records[-1].offset)
                    key = f"{TOPIC}-{partition}"
                    found[key] = [(record.offset, int(record.value or b"-1")) for record in records]
                self.positions[partition] = position
        return found, is_good

    def _on_error(self, partition: int, code: int) -> None:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.positions[partition] < self._judge.condemned().get(f"{TOPIC}-{partition}", 0):
                self._deleted.append(partition)
                return
            raise SimulationFailed(
                f"{self.client.name} was told that {TOPIC}-{partition} has no offset"
                f" {self.positions[partition]}, where everything below it was read before"
            )
        self.client.leaders.pop(partition, None)

    async def _begin_again(self, leader: int, partition: int) -> None:
        """It goes on where the log begins."""
        start = await self._ask_for_offset(leader, partition, _EARLIEST)
        if start is not None and start > self.positions[partition]:
            self.positions[partition] = start
            self._assign()
        else:
            self.client.leaders.pop(partition, None)

    def _request(self, partitions: list[int]) -> FetchRequest:
        return FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=_READ_COMMITTED,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=TOPIC,
                    partitions=[
                        FetchPartition(
                            partition=partition,
                            # Or one that led before, and has lost what it had, would say that it is gone.
                            current_leader_epoch=self.client.leader_epochs.get(partition, -1),
                            fetch_offset=self.positions[partition],
                            partition_max_bytes=self._bytes,
                        )
                        for partition in partitions
                    ],
                )
            ],
        )
