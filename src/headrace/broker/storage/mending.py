"""Mends a damaged segment with what other replicas have, and fetches no more than that (`range_repair.py`).

The damaged range is refused meanwhile, everything else is served and written as before, by a leader too. A
leader asks a replica that is in sync, a follower asks its leader. Both ask as consumers do, so that only what
is committed is given. Whatever cannot be mended so is left to `Integrity`, which gives the replica up.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.broker.cluster.asking import ask
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import HeadraceError
from headrace.core.ids import NO_BROKER
from headrace.core.tasks import spawn
from headrace.log.range_repair import Hole, RangeRepair, Unmendable
from headrace.log.scan import whole_batches
from headrace.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.messages.fetch_response import FetchResponse

if TYPE_CHECKING:
    from headrace.log.segment import Segment
    from headrace.replication.partition import Partition

T = TypeVar("T")
Failed = Callable[[str], None]

LONGEST_SECONDS: Final = 60.0
"""A survey reads the whole segment, perhaps a gigabyte."""
ANSWER_SECONDS: Final = 10.0
PAUSES: Final = (0.0, 1.0, 2.0, 4.0)
"""Before each attempt to have a range from the others. To give the replica up costs them all of it."""
FETCH_VERSION: Final = 13
"""By the topic's id: not from another topic of the same name."""
FETCHED_BYTES: Final = 1 << 20
WRITTEN_BYTES: Final = 256 * 1024
"""In one turn of the loop."""
MOST_KNOWN: Final = 100
MOST_TIMES: Final = 3
"""A segment that is damaged again and again lies where it cannot stay."""


class Mending:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._tasks: dict[Segment, asyncio.Task[None]] = {}
        self._times: dict[Segment, int] = {}
        self._is_stopping = False

    def is_under_way(self, segment: Segment) -> bool:
        return segment in self._tasks

    def begin(self, partition: Partition, segment: Segment, failed: Failed) -> bool:
        """False if it cannot be mended by parts. `failed` is told if it turns out later, and the log is still
        the one that it was."""
        if segment in self._tasks:
            return True
        times = self._times.get(segment, 0)
        if self._is_stopping or times >= MOST_TIMES:
            return False
        repair = RangeRepair.take(partition.log, segment, partition.high_watermark)
        if repair is None:
            return False
        self._times[segment] = times + 1
        if len(self._times) > MOST_KNOWN:
            del self._times[next(iter(self._times))]
        name = f"the mending of {partition.topic_partition}"
        self._tasks[segment] = spawn(name, self._mend(partition, repair, failed), self._runtime.loop)
        return True

    async def stop(self) -> None:
        self._is_stopping = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _mend(self, partition: Partition, repair: RangeRepair, failed: Failed) -> None:
        log = repair.log
        why = ""
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await self._try(partition, repair)
        except (Unmendable, HeadraceError) as error:
            why = str(error)
        except TimeoutError:
            why = f"it took longer than {LONGEST_SECONDS:g} s"
        except OSError as error:
            why = str(error)
            if repair.holds and error.errno != errno.ENOENT:
                log.directory.fail(error, f"mend {log.topic_partition}")
        finally:
            self._tasks.pop(repair.segment, None)
            repair.close()
        if why and repair.holds:
            failed(why)

    async def _try(self, partition: Partition, repair: RangeRepair) -> None:
        holes = await self._in_thread(repair.survey)
        filled = await self._fill(partition, repair, holes) if holes else []
        for hole, batches in filled:
            for at in range(0, hole.size, WRITTEN_BYTES):
                if not repair.holds:
                    return
                repair.write(hole.position + at, memoryview(batches)[at : at + WRITTEN_BYTES])
                await asyncio.sleep(0)
        await self._in_thread(repair.finish)
        if repair.holds:
            repair.done()
            self._runtime.metrics.scrub.ranges_mended += len(holes)
            self._runtime.log.warning(
                "log segment repaired from another replica",
                partition=str(partition.topic_partition),
                file=repair.segment.path(".log"),
                ranges=len(holes),
                bytes=sum(hole.size for hole in holes),
            )

    async def _fill(
        self, partition: Partition, repair: RangeRepair, holes: list[Hole]
    ) -> list[tuple[Hole, bytes]]:
        """What keeps the others from giving it may pass: a leader that changes, a broker that is slow."""
        why = ""
        for pause in PAUSES:
            await asyncio.sleep(pause)
            if not repair.holds:
                break
            try:
                return await self._fill_once(partition, repair, holes)
            except Unmendable as error:
                why = str(error)
        raise Unmendable(why)

    async def _fill_once(
        self, partition: Partition, repair: RangeRepair, holes: list[Hole]
    ) -> list[tuple[Hole, bytes]]:
        why = "no other replica can be asked"
        for source in self._sources(partition):
            link = PeerLink(self._runtime, self._metadata, source)
            try:
                filled = [(hole, await self._fetch(partition, link, hole)) for hole in holes]
                for hole, batches in filled:
                    await self._in_thread(repair.check, hole, batches)
                return filled
            except (Unmendable, HeadraceError) as error:
                why = f"broker {source}: {error}"
            finally:
                link.close()
        raise Unmendable(why)

    def _sources(self, partition: Partition) -> list[int]:
        asked = partition.isr if partition.is_leader else (partition.leader_id,)
        return [
            each
            for each in asked
            if each not in (self._runtime.broker_id, NO_BROKER) and self._metadata.is_alive(each)
        ]

    async def _fetch(self, partition: Partition, link: PeerLink, hole: Hole) -> bytes:
        fetched = bytearray()
        offset = hole.offset
        while offset < hole.next_offset and len(fetched) < hole.size:
            wanted = FetchPartition(
                partition=partition.topic_partition.partition,
                current_leader_epoch=partition.leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=min(hole.size - len(fetched), FETCHED_BYTES),
            )
            request = FetchRequest(
                max_bytes=wanted.partition_max_bytes,
                min_bytes=1,
                topics=[FetchTopic(topic_id=partition.topic_id, partitions=[wanted])],
            )
            reply = await ask(
                await link.open(), request, FetchResponse, version=FETCH_VERSION, timeout=ANSWER_SECONDS
            )
            if reply.error_code or not reply.responses or not reply.responses[0].partitions:
                raise Unmendable(f"error {reply.error_code}")
            (told,) = reply.responses[0].partitions
            if told.error_code:
                raise Unmendable(f"error {told.error_code}")
            batches, following = whole_batches(told.records or b"", offset)
            if not batches:
                raise Unmendable(f"it gives nothing at offset {offset}")
            fetched += batches
            offset = following
        return bytes(fetched)

    async def _in_thread(self, call: Callable[..., T], *args: object) -> T:
        return await self._runtime.loop.run_in_executor(None, call, *args)
