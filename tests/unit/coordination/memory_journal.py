"""A journal in memory that can lose what was not synced, fail, and make a commit wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from headrace.core.errors import DiskFull
from headrace.protocol.batch import read_header


class MemoryJournal:
    def __init__(self, batches: Iterable[bytes] = ()) -> None:
        self.batches = list(batches)
        self.synced = len(self.batches)
        self.syncs = 0
        self.failure: OSError | None = None
        self.gate: asyncio.Event | None = None
        self.is_full = False

    def end(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else 0

    def latest_epoch(self) -> int:
        return read_header(self.batches[-1]).leader_epoch if self.batches else -1

    def append(self, batch: bytes) -> None:
        assert read_header(batch).base_offset == self.end()
        if self.is_full:
            raise DiskFull("no room is left")
        self.batches.append(batch)

    def hold(self, batch: bytes) -> None:
        assert not self.is_full, "what is committed cannot be refused"
        self.append(batch)

    async def sync(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.syncs += 1
        self.synced = len(self.batches)

    def read(self, from_sequence: int) -> Iterable[bytes]:
        return [batch for batch in self.batches if read_header(batch).base_offset >= from_sequence]

    def after_power_loss(self) -> MemoryJournal:
        return MemoryJournal(self.batches[: self.synced])
