"""Partitions that wait to be opened here.

A topic of a thousand partitions makes thousands of files. If the loop stood still for all of them, the broker
would not ask for metadata meanwhile, and be taken for dead. So each change of the metadata opens some at
once, and the rest waits for turns of its own. Whoever asks for one that waits is told to ask again, as if the
metadata had not come yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.replicas.partitions import PartitionTable
from headrace.broker.runtime.runtime import Runtime
from headrace.core.tasks import spawn

if TYPE_CHECKING:
    from headrace.controller.topic_image import TopicImage

AT_ONCE: Final = 25
"""Some ten milliseconds, where nothing else wants the cores."""
TURN_SECONDS: Final = 0.02
RETRY_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 60.0


class LateOpenings:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        partitions: PartitionTable,
        host: Callable[[TopicImage, list[int]], None],
        targets_this_incarnation: Callable[[], bool],
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._partitions = partitions
        self._host = host
        self._targets_this_incarnation = targets_this_incarnation
        self._waiting: dict[UUID, dict[int, None]] = {}
        """Ordered sets of partitions. Their rows are read when their turn comes."""
        self._task: asyncio.Task[None] | None = None

    def add(self, topic_id: UUID, index: int) -> None:
        self._waiting.setdefault(topic_id, {})[index] = None
        if self._task is None or self._task.done():
            self._task = spawn("late openings", self._run(), self._runtime.loop)

    async def _run(self) -> None:
        clock = self._runtime.clock
        while self._waiting:
            if not self._targets_this_incarnation():
                # Registered anew, perhaps, and the metadata has yet to say so: no row need come with it.
                await asyncio.sleep(RETRY_SECONDS)
                continue
            began = clock.monotonic()
            for _ in range(AT_ONCE):
                if not self._open_next():
                    await asyncio.sleep(RETRY_SECONDS)
                    break
                if not self._waiting or clock.monotonic() - began > TURN_SECONDS:
                    break
            # A third of the time is for everybody else, also where the disk is slow.
            await asyncio.sleep((clock.monotonic() - began) / 2)

    def _open_next(self) -> bool:
        """False if another log of that name is still on its way out: it waits again, behind the others."""
        topic_id, indexes = next(iter(self._waiting.items()))
        index = next(iter(indexes))
        del indexes[index]
        if not indexes:
            del self._waiting[topic_id]
        self._open(topic_id, index)
        return index not in self._waiting.get(topic_id, ())

    def _open(self, topic_id: UUID, index: int) -> None:
        """What has been deleted, moved away or opened since has nothing to wait for."""
        topic = self._metadata.image.topic_by_id(topic_id)
        if topic is None:
            self._waiting.pop(topic_id, None)
        elif (
            index in topic
            and self._runtime.broker_id in topic.replicas(index)
            and self._partitions.find(topic.name, index) is None
        ):
            try:
                self._host(topic, [index])
            except Exception as error:  # of one partition; the others still have to be opened
                self._runtime.log.error("partition not opened", error=repr(error), exc_info=error)

    async def done(self) -> None:
        """Until nothing waits; not for ever, since a disk may."""
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=PATIENCE_SECONDS)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
