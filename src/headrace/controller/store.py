"""This broker's metadata: the image, the copy of the log that it is replayed from, and who follows it.

Every broker has one, whoever is in office. Only committed batches come in, one after the other, so what a
store has applied is always a prefix of what is committed, and no copy ever has to be cut back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from headrace.controller.checkpoint import Checkpoints, decode_checkpoint, encode_checkpoint
from headrace.controller.codec import decode_metadata_batch
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.core.errors import CorruptLog
from headrace.core.ports import Clock
from headrace.protocol.batch import read_header
from headrace.protocol.message import Message

CHECKPOINT_AFTER = 20_000
"""Records in the tail that make a start write a checkpoint: about a third of a second of replay."""

Subscriber = Callable[[MetadataDelta], None]


class MetadataCopy(Protocol):
    """This broker's own `__cluster_metadata-0`."""

    def end(self) -> int: ...

    def append(self, batch: bytes) -> None: ...

    def read(self, from_sequence: int) -> Iterable[bytes]:
        """Whole batches from the one at `from_sequence` on, lazily."""
        ...


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


class MetadataStore:
    """Invariant: the image is the replay of every batch below `end`, and the copy holds all of them."""

    __slots__ = (
        "_checkpoint_after",
        "_checkpoint_end",
        "_checkpoints",
        "_clock",
        "_copy",
        "_subscribers",
        "end",
        "epoch",
        "machine",
        "on_subscriber_error",
    )

    def __init__(
        self,
        machine: ControllerMachine,
        copy: MetadataCopy,
        clock: Clock,
        *,
        checkpoints: Checkpoints | None = None,
        checkpoint_after: int = CHECKPOINT_AFTER,
    ) -> None:
        self.machine = machine
        self.end = 0
        """The sequence of the next batch: everything below it is committed and applied."""
        self.epoch = -1
        """The controller epoch of the last batch."""
        self._copy = copy
        self._clock = clock
        self._checkpoints = checkpoints
        self._checkpoint_after = checkpoint_after
        self._checkpoint_end = 0
        self._subscribers: list[Subscriber] = []
        self.on_subscriber_error: Callable[[Exception], None] | None = None

    @property
    def image(self) -> MetadataImage:
        """Committed state. Read it without an await in between, or read it again after one."""
        return self.machine.image

    async def load(self) -> None:
        """Replay what this broker holds: the newest checkpoint that can be read, then the log behind it."""
        await self._load_checkpoint()
        for batch in self._copy.read(self.end):
            self._replay(batch, None, MetadataDelta())

    async def _load_checkpoint(self) -> None:
        checkpoint = None if self._checkpoints is None else await self._checkpoints.latest()
        if checkpoint is None:
            return
        if self._copy.end() < checkpoint.end_offset:
            raise CorruptLog(
                f"the metadata log ends at {self._copy.end()}, its checkpoint at {checkpoint.end_offset}:"
                " records are lost"
            )
        try:
            groups = decode_checkpoint(checkpoint)
        except CorruptLog:
            return
        for group in groups:
            self.machine.replay(group, MetadataDelta())
        self.end = self._checkpoint_end = checkpoint.end_offset
        self.epoch = checkpoint.epoch

    async def save_checkpoint_if_due(self) -> None:
        """So that the next start replays little. Nothing may be applied meanwhile."""
        if self._checkpoints is None or self.end - self._checkpoint_end < self._checkpoint_after:
            return
        if self.machine.in_transaction:
            return  # the image is behind `end` until the transaction ends
        checkpoint = encode_checkpoint(
            self.image, end_offset=self.end, epoch=self.epoch, timestamp_ms=self._clock.wall_ms()
        )
        self._checkpoint_end = self.end
        await self._checkpoints.save(checkpoint)

    # --- following ------------------------------------------------------------------------------------------

    def apply(self, batch: bytes, records: Iterable[Message] | None = None) -> None:
        """Take the next committed batch. `records` are those in it, where they are at hand."""
        delta = MetadataDelta()
        ensure_held(self._copy, read_header(batch).base_offset, batch)
        self._replay(batch, records, delta)
        delta.end_offset = self.end
        for changed in tuple(self._subscribers):
            try:
                changed(delta)
            except Exception as error:  # One subscriber's fault must not keep the others uninformed.
                if self.on_subscriber_error is None:
                    raise
                self.on_subscriber_error(error)

    def _replay(self, batch: bytes, records: Iterable[Message] | None, delta: MetadataDelta) -> None:
        header = read_header(batch)
        if header.base_offset != self.end:
            raise CorruptLog(f"metadata batch {header.base_offset} comes where {self.end} should be")
        self.machine.replay(decode_metadata_batch(batch) if records is None else records, delta)
        self.end = header.next_offset
        self.epoch = header.leader_epoch

    def subscribe(self, changed: Subscriber) -> Callable[[], None]:
        """Call `changed` after each batch, once the image shows it; the answer ends that."""
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)
