"""Checkpoints that cannot be written."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.snapshots import Snapshots
from headrace.core.errors import StorageError


class Store:
    """One checkpoint is due, and each try to plan it fails."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure
        self.checkpoint_due: int | None = 10
        self.tries = 0
        self.changed: Any = None

    def subscribe(self, changed: Any) -> None:
        self.changed = changed

    def plan_checkpoint(self, _end: int) -> Any:
        self.tries += 1
        raise self.failure


@pytest.mark.parametrize("failure", [StorageError("the disk is full"), KeyError("a mistake of ours")])
async def test_one_that_fails_is_told_and_tried_again_when_the_next_is_due(failure: Exception) -> None:
    """Not at each change: it costs as much as all records since the last one."""
    store, told = Store(failure), []
    log = SimpleNamespace(error=lambda event, **_: told.append(event))
    runtime: Any = SimpleNamespace(log=log, loop=asyncio.get_running_loop())
    metadata: Any = SimpleNamespace(store=store)
    snapshots = Snapshots(runtime, metadata, calm_seconds=0)
    snapshots.start()
    for due in (10, 10, 10, 20, 20):
        store.checkpoint_due = due
        await asyncio.sleep(0.01)
        store.changed(None)
    await asyncio.sleep(0.01)
    await snapshots.stop()
    assert store.tries == 2
    assert len(told) == 2


async def test_one_that_is_due_waits_for_calm_and_not_for_a_stop() -> None:
    store = Store(StorageError("never asked"))
    runtime: Any = SimpleNamespace()
    metadata: Any = SimpleNamespace(store=store)
    snapshots = Snapshots(runtime, metadata, calm_seconds=3600)
    snapshots.start()
    await asyncio.sleep(0.01)
    async with asyncio.timeout(15):
        await snapshots.stop()
    assert store.tries == 0
