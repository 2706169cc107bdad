"""Asks other replicas for what is damaged here: whether they have it whole, and for the batches themselves.

That a replica is alive and in sync says how far its log reaches, not that the disk still gives all of it. Two
replicas with the same damaged batch once took each other for whole, and both gave themselves up.

A leader asks the replicas that are in sync or eligible to lead, a follower asks its leader, and both only for
what they know to be committed. The other one may not know yet that it is: nobody tells a follower that cannot
fetch what is damaged here, nor a new leader below `min.insync.replicas`. So they ask as tools that compare
replicas do, which are given all that is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.log_ends import log_ends
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import CorruptBatch, HeadraceError
from headrace.core.ids import NO_BROKER
from headrace.log.range_repair import Unmendable
from headrace.log.scan import whole_batches
from headrace.protocol.batch import check
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse
from headrace.protocol.offset_timestamps import DEBUGGING_CONSUMER

if TYPE_CHECKING:
    from headrace.log.read_state import Damage
    from headrace.replication.partition import Partition

ANSWER_SECONDS: Final = 10.0
FETCH_VERSION: Final = 13
"""By the topic's id: not from another topic of the same name."""
FETCHED_BYTES: Final = 1 << 20


class Copies(Enum):
    WHOLE = auto()
    """Another replica has given all of it."""
    REFUSED = auto()
    """Whoever can be asked has it damaged, or not at all."""
    UNKNOWN = auto()
    """Somebody could not be asked, or has no answer now."""


class Refused(Unmendable):
    """The other replica does not have it."""


class DeletedThere(Unmendable):
    """The other replica has deleted it: retention has passed it. A consumer is not told up to where."""


class OtherCopies:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata

    def sources(self, partition: Partition) -> list[int]:
        asked = self._with_all_committed(partition) if partition.is_leader else [partition.leader_id]
        return [
            each
            for each in asked
            if each not in (self._runtime.broker_id, NO_BROKER) and self._metadata.is_alive(each)
        ]

    def _with_all_committed(self, partition: Partition) -> list[int]:
        """The ISR, then the ELR: below `min.insync.replicas` nothing more is committed, so that whoever left
        the ISR since has all of it. A follower behind a damaged batch cannot come back by itself."""
        return [*partition.isr, *(each for each in self._elr(partition) if each not in partition.isr)]

    def _elr(self, partition: Partition) -> tuple[int, ...]:
        topic = self._metadata.image.topic_by_id(partition.topic_id)
        return () if topic is None else topic.exceptional(partition.topic_partition.partition).elr

    async def of(self, partition: Partition, damages: Iterable[Damage]) -> Copies:
        """Whether one other replica has everything that is damaged here, so far as it is committed."""
        start, committed = partition.log.log_start_offset, partition.high_watermark
        ranges = [(max(each.offset, start), min(each.end_offset, committed)) for each in damages]
        found = Copies.REFUSED
        sources = self.sources(partition)
        for source in sources:
            try:
                if await self._has_all(partition, source, ranges):
                    return Copies.WHOLE
                found = Copies.UNKNOWN
            except Refused:
                pass
            except (Unmendable, HeadraceError):
                found = Copies.UNKNOWN
        return found if sources else Copies.UNKNOWN

    async def _has_all(self, partition: Partition, source: int, ranges: list[tuple[int, int]]) -> bool:
        link = PeerLink(self._runtime, self._metadata, source)
        committed = [(offset, end) for offset, end in ranges if offset < end]
        was_deleted = False
        try:
            for offset, end in committed:
                while offset < end:
                    try:
                        batches, offset = await self.fetch(partition, link, offset, FETCHED_BYTES)
                    except DeletedThere:  # nobody misses what retention has passed
                        was_deleted = True
                        offset = await self._first_there(partition, link, offset, end)
                        continue
                    await self._runtime.loop.run_in_executor(None, _verify, batches)
        finally:
            link.close()
        # A leader that was elected below min.insync.replicas never learns what is committed. Whoever is
        # eligible has all of it, wherever that ends: the controller would elect it, were this leader to die.
        is_known = partition.knows_the_end or source in self._elr(partition)
        has_committed = len(committed) == len(ranges) and (is_known or not partition.is_leader)
        if has_committed and not was_deleted:
            return True
        # What nobody was promised is no loss, if somebody else can lead. A follower hears soon that it is
        # committed; were it to give itself up as well, there might be nobody.
        name = partition.topic_partition
        ends = await log_ends(self._runtime, self._metadata, source, [(name.topic, name.partition)])
        if (name.topic, name.partition) not in ends:
            raise Unmendable("it does not say how far its log reaches")
        _, end = ends[name.topic, name.partition]
        if was_deleted and end < partition.high_watermark:
            raise Refused("its log ends before what is committed: nothing was deleted there")
        if has_committed:
            return True
        # A new leader that does not know yet what is committed may have more of it than it knows.
        needed = partition.high_watermark if is_known else partition.log.end_offset
        return partition.is_leader and end >= needed

    async def _first_there(self, partition: Partition, link: PeerLink, deleted: int, end: int) -> int:
        """The first offset behind `deleted` that the other replica still has, or `end`."""
        while end - deleted > 1:
            middle = (deleted + end) // 2
            try:
                await self.fetch(partition, link, middle, 1)
                end = middle
            except DeletedThere:
                deleted = middle
        return end

    async def fetch(
        self, partition: Partition, link: PeerLink, offset: int, most_bytes: int
    ) -> tuple[memoryview, int]:
        """Whole batches from `offset` on, unchecked, and the offset behind them. Unmendable: there are none,
        Refused: there never will be."""
        wanted = FetchPartition(
            partition=partition.topic_partition.partition,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=most_bytes,
        )
        request = FetchRequest(
            replica_id=DEBUGGING_CONSUMER,
            max_bytes=most_bytes,
            min_bytes=1,
            topics=[FetchTopic(topic_id=partition.topic_id, partitions=[wanted])],
        )
        reply = await ask(
            await link.open(), request, FetchResponse, version=FETCH_VERSION, timeout=ANSWER_SECONDS
        )
        if reply.error_code or not reply.responses or not reply.responses[0].partitions:
            raise Unmendable(f"error {reply.error_code}")
        (told,) = reply.responses[0].partitions
        if told.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
            raise Refused("it is damaged there too, or that replica is offline")
        if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise DeletedThere(f"offset {offset} is deleted there")
        if told.error_code:
            raise Unmendable(f"error {told.error_code}")
        batches, following = whole_batches(told.records or b"", offset)
        if not batches or following <= offset:
            raise Unmendable(f"it gives nothing at offset {offset}")
        return batches, following


def _verify(batches: memoryview) -> None:
    """For a thread."""
    at = 0
    while at < len(batches):
        try:
            at += check(batches, at).size
        except CorruptBatch as error:
            raise Refused(f"what another replica has is damaged too: {error}") from None
