"""Watches the room in the log directories: producers are refused before a disk is full.

A disk that runs full stops more than its producers: syncs may fail with it, and that is final. So they are
refused while there is still room for what goes on: replication, the topics of coordinators, checkpoints, and
compaction, which needs room to make some. Asking a file system may take long, so a thread does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from headrace.broker.runtime.runtime import Runtime
from headrace.core.tasks import spawn
from headrace.log.directory import LogDirectory
from headrace.log.free_space import Space, floor_of, is_full, resumes_at
from headrace.log.manager import LogManager

POLL_SECONDS: Final = 1.0

Found = list[tuple[LogDirectory, Space]]


class DiskSpace:
    def __init__(self, runtime: Runtime, logs: LogManager, on_room: Callable[[], None]) -> None:
        self._runtime = runtime
        self._logs = logs
        self._on_room = on_room
        self.spaces: dict[str, Space] = {}
        """By the path of the directory, as of the last look."""
        self._told: set[LogDirectory] = set()
        """Those that are known to be full, and were told of."""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._look()
        for directory in self._logs.directories:
            directory.on_full = self._on_full
        self._task = spawn("disk space", self._run(), self._runtime.loop)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                await self._look()
                self._on_room()
            except Exception as error:
                self._runtime.log.error("disk space check failed", error=repr(error), exc_info=error)

    async def _look(self) -> None:
        online = self._logs.online()
        for directory, space in await self._runtime.loop.run_in_executor(None, self._ask, online):
            self.spaces[directory.path] = space
            self._judge(directory, space)

    def _ask(self, directories: list[LogDirectory]) -> Found:
        found = []
        for directory in directories:
            try:
                space = Space(*(ask(directory.path) for ask in (self._free, self._total)))
            except OSError:
                continue  # whoever reads or writes there next finds out what is wrong
            found.append((directory, space))
        return found

    def _free(self, path: str) -> int:
        return self._runtime.disk.free_bytes(path)

    def _total(self, path: str) -> int:
        return self._runtime.disk.total_bytes(path)

    def _judge(self, directory: LogDirectory, space: Space) -> None:
        floor = floor_of(space.total, self._runtime.config.headrace_log_dir_min_free_bytes)
        directory.is_full = is_full(directory.is_full, space.free, floor)
        if directory.is_full and directory not in self._told:
            self._told.add(directory)
            self._runtime.log.error(
                "log directory full: producers are refused",
                directory=directory.path,
                free_bytes=space.free,
                floor_bytes=floor,
                resumes_at_bytes=resumes_at(floor),
                advice="free space on it (nothing uses its folders that end in -stray), or shorten the "
                "retention of its largest topics",
            )
        elif not directory.is_full and directory in self._told:
            self._told.discard(directory)
            self._runtime.log.info(
                "log directory has room again: producers go on",
                directory=directory.path,
                free_bytes=space.free,
                floor_bytes=floor,
            )

    def _on_full(self, directory: LogDirectory) -> None:
        """A write has found no room: the next look says so, and says when there is room again."""
