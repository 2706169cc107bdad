"""Deletions are made durable by a thread: few of them together, and each name is free when its own is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from typing import cast
from uuid import UUID

from headrace.broker.storage.removing import Removing
from headrace.core.ids import TopicPartition
from headrace.log.checkpoint_writer import DirectoryCheckpoints
from headrace.log.directory import LogDirectory
from headrace.log.removals import Removals
from headrace.testing.disk import SimulatedDisk

PATH = "/data"
MANY = 40


class SlowCheckpoints:
    """In place of the files: the first call waits."""

    def __init__(self, error: Exception | None = None) -> None:
        self.forgotten: list[list[TopicPartition]] = []
        self.go_on = threading.Event()
        self._error = error

    def note_gone(self, partitions: Collection[TopicPartition]) -> None:
        pass

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        assert self.go_on.wait(60)
        self.forgotten.append(list(partitions))
        if self._error is not None:
            raise self._error


def names() -> list[TopicPartition]:
    return [TopicPartition("t", index) for index in range(MANY)]


async def removed(checkpoints: SlowCheckpoints) -> Removals:
    disk = SimulatedDisk()
    disk.make_dirs(PATH)
    directory = LogDirectory(disk, PATH, UUID(int=2))
    removals = Removals(disk, lambda: UUID(int=1), {PATH: cast(DirectoryCheckpoints, checkpoints)})
    removing = Removing(asyncio.get_running_loop(), removals)
    for name in names():
        removals.forget(directory, name)
    assert removals.leaving == set(names())
    checkpoints.go_on.set()
    await removing.drain()
    return removals


def test_what_comes_meanwhile_goes_together() -> None:
    checkpoints = SlowCheckpoints()
    removals = asyncio.run(removed(checkpoints))
    assert checkpoints.forgotten == [names()[:1], names()[1:]]
    assert not removals.leaving


def test_one_that_fails_holds_up_no_other() -> None:
    checkpoints = SlowCheckpoints(RuntimeError("a mistake"))
    removals = asyncio.run(removed(checkpoints))
    assert len(checkpoints.forgotten) == 2
    assert not removals.leaving
