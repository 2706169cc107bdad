"""Checkpoints of the metadata while the broker runs: written in a thread when one is due.

A broker says in each metadata fetch up to where it holds one. When enough brokers do, the controller lets
ZooKeeper forget the batches below: see duties.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headrace.controller.delta import MetadataDelta
from headrace.core.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class Snapshots:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._broker.store.subscribe(self._on_delta)
        self._begin()

    async def stop(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _on_delta(self, _delta: MetadataDelta) -> None:
        self._begin()

    def _begin(self) -> None:
        """One at a time. Whatever became due meanwhile is found when it is done."""
        if self._broker.store.checkpoint_due is not None and self._task is None:
            self._task = asyncio.ensure_future(self._write())
            self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is None:
            self._begin()

    async def _write(self) -> None:
        broker = self._broker
        end = broker.store.checkpoint_due
        if end is None:
            return
        plan = broker.store.plan_checkpoint(end)
        try:
            checkpoint = await broker.loop.run_in_executor(None, plan.carry_out)
            await broker.store.keep_checkpoint(checkpoint)
        except HeadraceError as error:
            # It is only a shortcut: the log has everything. Tried again when the next one is due.
            broker.log.error("the metadata checkpoint could not be written", error=str(error))
            raise
