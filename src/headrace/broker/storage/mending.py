"""Mends a damaged segment with what other replicas have, and fetches no more than that (`range_repair.py`).

The damaged range is refused meanwhile, everything else is served and written as before, by a leader too. Who
is asked, and how, is for `other_copies.py`. Whatever cannot be mended so is left to `Integrity`, which gives
the replica up if another has what is damaged here.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.runtime.runtime import Runtime
from headrace.broker.storage.other_copies import FETCHED_BYTES, OtherCopies
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.log.range_repair import Hole, RangeRepair, Unmendable
from headrace.log.read_state import Damage

if TYPE_CHECKING:
    from headrace.log.segment import Segment
    from headrace.replication.partition import Partition

T = TypeVar("T")
Failed = Callable[[str], None]

LONGEST_SECONDS: Final = 60.0
"""A survey reads the whole segment, perhaps a gigabyte."""
PAUSES: Final = (0.0, 1.0, 2.0, 4.0)
"""Before each attempt to have a range from the others. To give the replica up costs them all of it."""
WRITTEN_BYTES: Final = 256 * 1024
"""In one turn of the loop."""
MOST_KNOWN: Final = 100
MOST_TIMES: Final = 3
"""A segment that is damaged again and again lies where it cannot stay."""


class Mending:
    def __init__(self, runtime: Runtime, metadata: MetadataCache, copies: OtherCopies) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._copies = copies
        self._tasks: dict[Segment, asyncio.Task[None]] = {}
        self._times: dict[Segment, int] = {}
        """How often each was mended: an attempt that found no copy says nothing of this disk."""
        self._is_stopping = False

    def is_under_way(self, segment: Segment) -> bool:
        return segment in self._tasks

    def begin(self, partition: Partition, segment: Segment, failed: Failed) -> bool:
        """False if it cannot be mended by parts. `failed` is told if it turns out later, and the log is still
        the one that it was."""
        if segment in self._tasks:
            return True
        if self._is_stopping or self._times.get(segment, 0) >= MOST_TIMES:
            return False
        repair = RangeRepair.take(partition.log, segment, partition.high_watermark)
        if repair is None:
            return False
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
        if repair.holds:
            self._note(repair, holes)
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
            self._count(repair.segment)
            self._runtime.metrics.scrub.ranges_mended += len(holes)
            self._runtime.log.warning(
                "log segment repaired from another replica",
                partition=str(partition.topic_partition),
                file=repair.segment.path(".log"),
                ranges=len(holes),
                bytes=sum(hole.size for hole in holes),
            )

    def _note(self, repair: RangeRepair, holes: list[Hole]) -> None:
        """What the survey has found beside what was known: others must have that too, if this replica is to
        be given up."""
        reads = repair.segment.read_state()
        known = reads.damage
        for hole in holes:
            if not any(each.position < hole.end and hole.position < each.end for each in known):
                reads.note_damage(
                    Damage(hole.position, hole.end, hole.offset, hole.next_offset, "it is damaged")
                )

    def _count(self, segment: Segment) -> None:
        self._times[segment] = self._times.get(segment, 0) + 1
        if len(self._times) > MOST_KNOWN:
            del self._times[next(iter(self._times))]

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
        for source in self._copies.sources(partition):
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

    async def _fetch(self, partition: Partition, link: PeerLink, hole: Hole) -> bytes:
        fetched = bytearray()
        offset = hole.offset
        while offset < hole.next_offset and len(fetched) < hole.size:
            most = min(hole.size - len(fetched), FETCHED_BYTES)
            batches, following = await self._copies.fetch(partition, link, offset, most)
            fetched += batches
            offset = following
        return bytes(fetched)

    async def _in_thread(self, call: Callable[..., T], *args: object) -> T:
        return await self._runtime.loop.run_in_executor(None, call, *args)
