"""Checkpoints of the metadata while the broker runs: written in a thread when one is due.

A broker says in each metadata fetch up to where it holds one. When enough brokers do, the controller lets
ZooKeeper forget the batches below: see duties.py.
"""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.delta import MetadataDelta
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn

CALM_SECONDS: Final = 2.0
"""A checkpoint is mostly due because a broker has died and thousands of partitions have moved. It may cost a
second of the interpreter: not in the second in which the partitions are waited for."""


class Snapshots:
    def __init__(self, runtime: Runtime, metadata: MetadataCache, calm_seconds: float = CALM_SECONDS) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._calm_seconds = calm_seconds
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._tried: int | None = None
        """The end of the last one: it is tried once, since a try costs as much as all records behind it."""

    def start(self) -> None:
        self._metadata.store.subscribe(self._on_delta)
        self._begin()

    async def stop(self) -> None:
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    def _on_delta(self, _delta: MetadataDelta) -> None:
        self._begin()

    def _begin(self) -> None:
        """One at a time. Whatever became due meanwhile is found when it is done."""
        due = self._metadata.store.checkpoint_due
        if due is not None and due != self._tried and self._task is None:
            self._tried = due
            self._task = spawn("the metadata checkpoint", self._write(due))
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            self._begin()

    async def _write(self, end: int) -> None:
        try:
            async with asyncio.timeout(self._calm_seconds):
                await self._stopping.wait()
            return
        except TimeoutError:
            pass
        try:
            plan = self._metadata.store.plan_checkpoint(end)
            checkpoint = await self._runtime.loop.run_in_executor(None, plan.carry_out)
            await self._metadata.store.keep_checkpoint(checkpoint)
        except HeadraceError as error:
            # It is only a shortcut: the log has everything. Tried again when the next one is due.
            self._runtime.log.error("metadata snapshot not written", error=str(error))
        except Exception as error:
            self._runtime.log.error("metadata snapshot not written", error=repr(error), exc_info=error)
