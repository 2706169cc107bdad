"""This broker's metadata: the image, the copy of the log that it is replayed from, and who follows it.

Every broker has one, the active controller. Only committed batches come in, one after the other, so what a
store has applied is always a prefix of what is committed, and no copy ever has to be cut back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from crc32c import crc32c

from headrace.controller.checkpoint import Checkpoint, CheckpointPlan, Checkpoints, decode_checkpoint
from headrace.controller.codec import decode_metadata_batch
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import MetadataImage
from headrace.controller.machine import ControllerMachine
from headrace.core.errors import CorruptLog
from headrace.protocol.batch import read_header
from headrace.protocol.message import Message

CHECKPOINT_AFTER = 5_000
"""Records behind a checkpoint that make the next one due, where the image itself is not larger than that."""

Subscriber = Callable[[MetadataDelta], None]


class MetadataCopy(Protocol):
    """This broker's own `__cluster_metadata-0`."""

    def end(self) -> int: ...

    def hold(self, batch: bytes) -> None:
        """Append a committed batch, which cannot be refused."""
        ...

    async def sync(self) -> None:
        """Make what was appended durable."""
        ...

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
    copy.hold(batch)


class MetadataStore:
    """Invariant: the image is the replay of every batch below `end`, and the copy holds all of them."""

    __slots__ = (
        "_checkpoint_after",
        "_checkpoints",
        "_copy",
        "_due_since",
        "_last_checkpoint",
        "_subscribers",
        "checkpoint_end",
        "end",
        "epoch",
        "machine",
        "on_subscriber_error",
    )

    def __init__(
        self,
        machine: ControllerMachine,
        copy: MetadataCopy,
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
        self._checkpoints = checkpoints
        self._checkpoint_after = checkpoint_after
        self._last_checkpoint: Checkpoint | None = None
        self._due_since = 0
        self.checkpoint_end = 0
        """A checkpoint of everything below it is on this broker's disk."""
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
        self._last_checkpoint = checkpoint
        self.end = self._due_since = self.checkpoint_end = checkpoint.end_offset
        self.epoch = checkpoint.epoch

    # --- checkpoints ----------------------------------------------------------------------------------------

    @property
    def checkpoint_due(self) -> int | None:
        """Where the next checkpoint has to be, if one is due. Every broker finds the same place: it depends
        on the committed batches alone, so that several hold a checkpoint of the same end."""
        due = self._due_since
        return due if self._checkpoints is not None and due > self.checkpoint_end else None

    def plan_checkpoint(self, end: int) -> CheckpointPlan:
        """What is needed to write a checkpoint at `end` without this store, which goes on meanwhile."""
        tail = []
        for batch in self._copy.read(self.checkpoint_end):
            if read_header(batch).base_offset >= end:
                break
            tail.append(batch)
        return CheckpointPlan(self._last_checkpoint, tail)

    async def keep_checkpoint(self, checkpoint: Checkpoint) -> None:
        assert self._checkpoints is not None, "only a store with a place for them plans checkpoints"
        # The log first: it must not end before its checkpoint, whenever power is lost. And the service
        # forgets what enough brokers hold in a checkpoint: these copies may soon be the only ones.
        await self._copy.sync()
        await self._checkpoints.save(checkpoint)
        self._last_checkpoint = checkpoint
        self.checkpoint_end = checkpoint.end_offset

    def checkpoint_checksum(self, end: int) -> int:
        """Of the checkpoint at `end`, the same on every broker; 0 if this broker's is of another end."""
        last = self._last_checkpoint
        return crc32c(last.content) if last is not None and last.end_offset == end else 0

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
        # An image costs more to write than a tail to replay: a large one is written more rarely.
        enough = max(self._checkpoint_after, self.image.partition_count)
        if self.end - self._due_since >= enough and not self.machine.in_transaction:
            self._due_since = self.end

    def subscribe(self, changed: Subscriber) -> Callable[[], None]:
        """Call `changed` after each batch, once the image shows it; the answer ends that."""
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)
