"""Checkpoints of the metadata beside the metadata log, under the names that Kafka gives them."""

from __future__ import annotations

import re
from typing import Final

from headrace.controller.checkpoint import Checkpoint
from headrace.controller.log_journal import Offload, offload_to_thread
from headrace.core.errors import StorageError
from headrace.core.ports import Disk
from headrace.log.files import read_all, replace

KEPT: Final = 2
"""The newest, and one more in case the newest cannot be read."""

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint\Z", re.ASCII)


class CheckpointFiles:
    __slots__ = ("_disk", "_folder", "_offload")

    def __init__(self, disk: Disk, folder: str, *, offload: Offload = offload_to_thread) -> None:
        self._disk = disk
        self._folder = folder
        self._offload = offload

    async def latest(self) -> Checkpoint | None:
        found = self._names()
        if not found:
            return None
        end_offset, epoch, name = found[-1]
        try:
            return Checkpoint(end_offset, epoch, read_all(self._disk, f"{self._folder}/{name}"))
        except OSError as error:
            raise StorageError(f"{name} cannot be read: {error}") from error

    async def save(self, checkpoint: Checkpoint) -> None:
        await self._offload(lambda: self._save(checkpoint))

    def _save(self, checkpoint: Checkpoint) -> None:
        name = f"{checkpoint.end_offset:020d}-{checkpoint.epoch:010d}.checkpoint"
        try:
            replace(self._disk, f"{self._folder}/{name}", checkpoint.content, sync=True)
            for _, _, old in self._names()[:-KEPT]:
                self._disk.remove(f"{self._folder}/{old}")
        except OSError as error:
            raise StorageError(f"{name} cannot be written: {error}") from error

    def _names(self) -> list[tuple[int, int, str]]:
        """(end offset, epoch, name), the newest last."""
        found = []
        for name in self._disk.list(self._folder):
            parsed = _NAME.match(name)
            if parsed is not None:
                found.append((int(parsed[1]), int(parsed[2]), name))
        return sorted(found)
