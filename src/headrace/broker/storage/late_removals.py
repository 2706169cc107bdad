"""Partitions that the metadata has taken away, on their way out.

A topic of thousands of partitions has thousands of folders to be renamed, and whoever waits for its records
has to be told. Clients find nothing of it from the moment on at which the metadata says so; the rest has its
turns. Until a partition's turn has come nothing new takes its name. A start that finds folders which had no
turn sets them aside, as if it had not seen the deletion.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.broker.runtime.runtime import Runtime
from headrace.core.tasks import spawn

if TYPE_CHECKING:
    from headrace.core.ids import TopicPartition
    from headrace.replication.partition import Partition

AT_ONCE: Final = 50


class LateRemovals:
    """Invariant: `waiting` holds the names of all that are queued."""

    def __init__(self, runtime: Runtime, remove: Callable[[Sequence[Partition]], None]) -> None:
        self._runtime = runtime
        self._remove = remove
        self._queue: deque[Partition] = deque()
        self._task: asyncio.Task[None] | None = None
        self.waiting: set[TopicPartition] = set()

    def add(self, partitions: Sequence[Partition]) -> None:
        """The first of them go at once, and behind others none."""
        if not self._queue:
            self._remove(partitions[:AT_ONCE])
            partitions = partitions[AT_ONCE:]
        if not partitions:
            return
        self._queue += partitions
        self.waiting.update(partition.topic_partition for partition in partitions)
        if self._task is None or self._task.done():
            self._task = spawn("late removals", self._run(), self._runtime.loop)

    async def _run(self) -> None:
        turns = self._runtime.turns
        while self._queue:
            await turns.next()
            self._remove_next()

    def _remove_next(self) -> None:
        few = [self._queue.popleft() for _ in range(min(AT_ONCE, len(self._queue)))]
        self.waiting.difference_update(partition.topic_partition for partition in few)
        self._remove(few)

    def finish(self) -> None:
        """All that is left, when nobody is served any more."""
        if self._task is not None:
            self._task.cancel()
        while self._queue:
            self._remove_next()
