"""The metadata committer of the controller: it writes batches through the coordination port, one at a time,
and settles doubts.

When a commit's outcome is unknown, its sequence is read before anything else is decided. There it stands
(it was committed), or another's batch stands there (we are deposed), or nothing does (it is tried again;
the sequence and the epoch forbid that it lands twice). While the service cannot be asked, the pen waits:
nobody else is asked to decide, and nothing is decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from headrace.controller.codec import encode_metadata_batch
from headrace.core.errors import CorruptLog
from headrace.core.ids import ControllerEpoch
from headrace.core.ports import Clock
from headrace.core.ports_coordination import (
    CommittedBatch,
    CommitUnknown,
    ControllerFenced,
    Coordination,
    CoordinationUnavailable,
    SequenceTaken,
)
from headrace.protocol.batch import read_header

MOST_ATTEMPTS = 3

UntilConnected = Callable[[], Awaitable[None]]
"""Waits until the session is connected again. Raises ControllerFenced if it has ended."""


class MetadataCommitter:
    """Valid for one term."""

    __slots__ = ("_clock", "_coordination", "_until_connected", "epoch")

    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        epoch: ControllerEpoch,
        until_connected: UntilConnected,
    ) -> None:
        self._coordination = coordination
        self._clock = clock
        self._until_connected = until_connected
        self.epoch = epoch

    async def committed_from(self, end: int) -> AsyncIterator[bytes]:
        """What is committed from `end` on, without a gap."""
        while batches := await self._read(end):
            for sequence, batch in batches:
                if sequence != end:
                    raise CorruptLog(f"metadata batch {sequence} is read where {end} should be")
                yield batch
                end = read_header(batch).next_offset

    async def write(self, sequence: int, values: Sequence[bytes]) -> bytes:
        """Commit one batch and return it. After any error but DiskFull this committer must not be used
        again."""
        batch = encode_metadata_batch(
            values, base_offset=sequence, controller_epoch=self.epoch, timestamp_ms=self._clock.wall_ms()
        )
        doubts = 0
        while True:
            try:
                await self._coordination.append(sequence, batch, self.epoch)
                return batch
            except CoordinationUnavailable:
                await self._until_connected()  # nothing was tried
            except (CommitUnknown, SequenceTaken):
                if await self._stands(sequence, batch):
                    return batch
                doubts += 1
                if doubts == MOST_ATTEMPTS:
                    raise

    async def _stands(self, sequence: int, batch: bytes) -> bool:
        found = await self._read(sequence)
        if not found:
            return False
        if found[0].sequence != sequence or found[0].batch != batch:
            raise ControllerFenced(f"another controller's batch is committed at {sequence}")
        return True

    async def _read(self, sequence: int) -> Sequence[CommittedBatch]:
        while True:
            try:
                return await self._coordination.read(sequence)
            except CoordinationUnavailable:
                await self._until_connected()
