"""Coordination inside one process, over one synced journal: for a single node, tests and simulation.

The journal is the truth. A commit is its append plus its sync; the controller epoch is the leader
epoch in the batches, so a restart finds the last one that ever committed something. Membership and
controller are in memory: they end with the process, as they should.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from headrace.core.errors import DiskFull, StorageError
from headrace.core.failures import report
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ActiveController,
    ClusterIdMissing,
    CommittedBatch,
    CommitUnknown,
    ControllerFenced,
    Member,
    SequenceTaken,
    SessionState,
    SnapshotPointer,
)
from headrace.protocol.batch import read_header

READ_BYTES = 4 * 1024 * 1024
"""How much one `read` answers with at most, beyond its first batch."""


class Journal(Protocol):
    """A log of batches on one disk. `append` may be lost by a crash until `sync` has returned."""

    def end(self) -> int:
        """The sequence that the next batch gets."""
        ...

    def latest_epoch(self) -> int:
        """The leader epoch of the last batch, -1 if there is none."""
        ...

    def append(self, batch: bytes) -> None:
        """Add one batch, whose base offset is `end`. Raises DiskFull if there is no room for it."""
        ...

    async def sync(self) -> None:
        """Make everything appended so far durable, without holding up the event loop."""
        ...

    def read(self, from_sequence: int) -> Iterable[bytes]:
        """Whole batches from the one at `from_sequence` on, lazily."""
        ...


class LocalCoordination:
    def __init__(self, journal: Journal, *, cluster_id: str | None = None) -> None:
        self._journal = journal
        self._cluster_id = cluster_id
        # Held while a batch is being synced: whoever becomes controller meanwhile waits, so a commit is
        # wholly before or wholly after a change of the controller.
        self._commit = asyncio.Lock()
        # What is in the journal when we open it was committed: an unsynced tail that survived is whole.
        self._committed_end = journal.end()
        self._epoch = ControllerEpoch(journal.latest_epoch())
        self._active_controller: ActiveController | None = None
        self._members: dict[BrokerId, Member] = {}
        self._versions: dict[BrokerId, dict[UUID, int]] = {}
        self._last_broker_epoch = -1
        self._watchers: list[Callable[[], None]] = []
        self._controller_watchers: list[Callable[[], None]] = []
        self._snapshot: SnapshotPointer | None = None
        self._failure: StorageError | None = None

    # A process is always connected to itself, and its session ends with it.

    @property
    def session_timeout_ms(self) -> int:
        return 0

    @property
    def session(self) -> SessionState:
        return SessionState.CONNECTED

    def watch_session(self, changed: Callable[[SessionState], None]) -> Callable[[], None]:
        del changed  # nothing ever changes
        return lambda: None

    @property
    def silent_seconds(self) -> float:
        return 0.0

    async def probe(self) -> None:
        return None

    async def start(self) -> None:
        return None

    async def close(self) -> None:
        self._members.clear()
        self._active_controller = None

    async def claim_cluster_id(self, proposed: str, *, directories_empty: bool) -> str:
        if self._cluster_id is None:
            if not directories_empty:
                raise ClusterIdMissing(
                    "the log directories hold data but no cluster id: start with the directories that hold"
                    " meta.properties, or with empty ones"
                )
            self._cluster_id = proposed
        return self._cluster_id

    async def register(self, broker_id: BrokerId, description: bytes) -> BrokerEpoch:
        # Above the journal's end, so above the epoch of every registration that a record tells of.
        self._last_broker_epoch = max(self._last_broker_epoch, self._journal.end()) + 1
        epoch = BrokerEpoch(self._last_broker_epoch)
        self._members[broker_id] = Member(broker_id, epoch, description)
        self._members_changed()
        return epoch

    async def deregister(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        member = self._members.get(broker_id)
        if member is not None and member.epoch == epoch:
            del self._members[broker_id]
            self._members_changed()

    async def members(self) -> Mapping[BrokerId, Member]:
        return dict(self._members)

    def watch_members(self, changed: Callable[[], None]) -> Callable[[], None]:
        return _watch(self._watchers, changed)

    def _members_changed(self) -> None:
        _tell(self._watchers)

    async def note_versions(self, broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        self._versions[broker_id] = dict(versions)

    async def versions(self, broker_id: BrokerId) -> Mapping[UUID, int]:
        return dict(self._versions.get(broker_id, {}))

    async def claim_controller(
        self, broker_id: BrokerId, *, deposing: ControllerEpoch | None = None
    ) -> ControllerEpoch:
        async with self._commit:
            if deposing is not None and deposing != self._epoch:
                raise ControllerFenced(
                    f"controller epoch {self._epoch} has begun, {deposing} is over already"
                )
            self._epoch = ControllerEpoch(self._epoch + 1)
            epoch = self._epoch
            self._active_controller = ActiveController(broker_id, epoch)
        _tell(self._controller_watchers)
        return epoch

    async def active_controller(self) -> ActiveController | None:
        return self._active_controller

    async def latest_epoch(self) -> ControllerEpoch:
        return self._epoch

    def watch_controller(self, changed: Callable[[], None]) -> Callable[[], None]:
        return _watch(self._controller_watchers, changed)

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        async with self._commit:
            if self._failure is not None:
                raise self._failure
            self._require_active(epoch)
            if sequence < self._committed_end:
                raise SequenceTaken(f"sequence {sequence} is committed; the end is {self._committed_end}")
            header = read_header(batch)
            if sequence != self._committed_end or header.base_offset != sequence:
                raise ValueError(
                    f"batch {header.base_offset} at sequence {sequence}: the end is {self._committed_end}"
                )
            await self._store(batch)
            self._committed_end = header.next_offset

    def _require_active(self, epoch: ControllerEpoch) -> None:
        if self._active_controller is None or epoch != self._active_controller.epoch:
            raise ControllerFenced(f"controller epoch {epoch} is over, {self._epoch} is the latest")

    async def _store(self, batch: bytes) -> None:
        """An error here is final, except DiskFull: after a failed sync nobody knows what the disk holds."""
        try:
            self._journal.append(batch)
            await self._journal.sync()
        except DiskFull:
            raise
        except asyncio.CancelledError:
            self._failure = StorageError("a metadata commit was cut off; read the journal again")
            raise
        except Exception as error:
            self._failure = StorageError(f"the metadata log cannot be written: {error}")
            raise CommitUnknown(f"the metadata log failed in a commit: {error}") from error

    async def end(self) -> int:
        return self._committed_end

    async def read(self, from_sequence: int) -> Sequence[CommittedBatch]:
        if self._failure is not None:
            raise self._failure
        found: list[CommittedBatch] = []
        size = 0
        if from_sequence >= self._committed_end:
            return found
        for batch in self._journal.read(from_sequence):
            sequence = read_header(batch).base_offset
            if sequence >= self._committed_end or size >= READ_BYTES:
                break
            found.append(CommittedBatch(sequence, batch))
            size += len(batch)
        return found

    async def start_offset(self) -> int:
        return 0

    async def snapshot(self) -> SnapshotPointer | None:
        return self._snapshot

    async def move_snapshot(self, pointer: SnapshotPointer, epoch: ControllerEpoch) -> None:
        self._require_active(epoch)
        self._snapshot = pointer

    async def trim(self, before: int, epoch: ControllerEpoch) -> None:
        """Keeps everything: the journal is this node's only copy."""
        if before > self._committed_end:
            raise ValueError(f"nothing is committed at {before} yet")
        self._require_active(epoch)


def _tell(watchers: list[Callable[[], None]]) -> None:
    for changed in tuple(watchers):
        try:
            changed()
        except Exception as error:
            report("a listener of the coordination", error)


def _watch(watchers: list[Callable[[], None]], changed: Callable[[], None]) -> Callable[[], None]:
    watchers.append(changed)

    def stop() -> None:
        if changed in watchers:
            watchers.remove(changed)

    return stop
