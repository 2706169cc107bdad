"""The controller's pen: writes batches through the coordination port, one at a time, and settles doubts.

When a commit's outcome is unknown, its sequence is read before anything else is decided. There it stands
(it was committed), or another's batch stands there (we are deposed), or nothing does (it is tried again;
the sequence and the epoch forbid that it lands twice).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from headrace.controller.codec import encode_metadata_batch
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports import Clock
from headrace.core.ports_coordination import (
    CommittedBatch,
    CommitUnknown,
    Coordination,
    OfficeLost,
    SequenceTaken,
)
from headrace.protocol.batch import read_header

MOST_ATTEMPTS = 3


class MetadataCopy(Protocol):
    """This broker's own `__cluster_metadata-0`."""

    def end(self) -> int: ...

    def append(self, batch: bytes) -> None: ...


def ensure_held(copy: MetadataCopy, sequence: int, batch: bytes) -> None:
    """Make the copy hold the committed `batch`. Doing it twice is doing it once.

    Where the journal of the local coordination is the copy itself, the commit was the append.
    """
    end = copy.end()
    if end > sequence:
        return
    if end < sequence:
        raise CorruptLog(f"the copy of the metadata log ends at {end}; batch {sequence} does not follow")
    copy.append(batch)


class Pen:
    """Valid for one term of office."""

    __slots__ = ("_clock", "_coordination", "_copy", "_epoch", "end")

    def __init__(self, coordination: Coordination, clock: Clock, copy: MetadataCopy | None) -> None:
        self._coordination = coordination
        self._clock = clock
        self._copy = copy
        self._epoch = ControllerEpoch(-1)
        self.end = 0
        """The sequence of the next batch: everything below it is committed, and held by the copy."""

    @property
    def epoch(self) -> ControllerEpoch:
        return self._epoch

    async def take_office(self, broker_id: BrokerId) -> None:
        self._epoch = await self._coordination.take_office(broker_id)

    def skip_to(self, end: int) -> None:
        """What is below `end` is known from a checkpoint."""
        self.end = end

    async def committed_tail(self) -> AsyncIterator[bytes]:
        """What is committed beyond `end`, moving `end` along."""
        while batches := await self._coordination.read(self.end):
            for sequence, batch in batches:
                if sequence != self.end:
                    raise CorruptLog(f"metadata batch {sequence} is read where {self.end} should be")
                self._hold(sequence, batch)
                yield batch

    async def write(self, values: Sequence[bytes]) -> None:
        """Commit one batch. After OfficeLost, or any other error, this pen must not be used again."""
        sequence = self.end
        batch = encode_metadata_batch(
            values,
            base_offset=sequence,
            controller_epoch=self._epoch,
            timestamp_ms=self._clock.wall_ms(),
        )
        for attempt in range(1, MOST_ATTEMPTS + 1):
            try:
                await self._coordination.append(sequence, batch, self._epoch)
                break
            except (CommitUnknown, SequenceTaken):
                if await self._stands(sequence, batch):
                    break
                if attempt == MOST_ATTEMPTS:
                    raise
        self._hold(sequence, batch)

    async def _stands(self, sequence: int, batch: bytes) -> bool:
        found: Sequence[CommittedBatch] = await self._coordination.read(sequence)
        if not found:
            return False
        if found[0].sequence != sequence or found[0].batch != batch:
            raise OfficeLost(f"another controller's batch is committed at {sequence}")
        return True

    def _hold(self, sequence: int, batch: bytes) -> None:
        if self._copy is not None:
            ensure_held(self._copy, sequence, batch)
        self.end = read_header(batch).next_offset
