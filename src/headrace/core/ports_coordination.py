"""The coordination port: where metadata is committed, who lives, who holds the controllership.

The seam is small on purpose. A metadata batch is opaque bytes with a sequence (the base offset of its first
record), and a commit is one atomic step: "I am still the active controller" and "this is the next sequence".
Everything else about metadata lives above this port.

Two implementations pass one behaviour suite: a local one over the synced log of a single node, and a
replicated one. Watches are hints: whoever is told that something changed reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol
from uuid import UUID

from headrace.core.errors import HeadraceError, RetriableError, ServerError
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch


class CoordinationError(HeadraceError):
    """What a commit, a controllership or a registration can come to, other than success."""


class ControllerFenced(CoordinationError):
    """Another broker has become controller since. The only answer is to resign; never to repeat."""


class SequenceTaken(CoordinationError):
    """A batch is committed at this sequence already: it may be one's own of an unknown outcome."""


class CommitUnknown(CoordinationError):
    """The batch may or may not be committed. Read its sequence before deciding anything else."""


class CoordinationUnavailable(RetriableError):
    """The service cannot be asked now (a suspended session); nothing was changed."""


class ClusterIdMissing(ServerError):
    """No cluster id exists, and a broker with data may not make one: its data belongs elsewhere."""


class CommittedBatch(NamedTuple):
    sequence: int
    batch: bytes


class ActiveController(NamedTuple):
    holder: BrokerId
    epoch: ControllerEpoch


class Member(NamedTuple):
    broker_id: BrokerId
    epoch: BrokerEpoch
    description: bytes


class SessionState(Enum):
    """How this process stands with the service. Only a connected one may become controller or commit."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The service does not answer. The session may still live there: nothing is known to be lost."""
    LOST = "lost"
    """The session has ended, and with it the membership and the controllership: register again once
    connected."""


class SnapshotPointer(NamedTuple):
    """A snapshot of the metadata that enough brokers hold, so that the batches below it may go."""

    end_offset: int
    checksum: int
    holders: tuple[BrokerId, ...]


class Coordination(Protocol):
    @property
    def session_timeout_ms(self) -> int:
        """How long a process that has gone silent still counts as a member."""
        ...

    @property
    def session(self) -> SessionState: ...

    def watch_session(self, changed: Callable[[SessionState], None]) -> Callable[[], None]:
        """Call `changed` on the event loop after each change, until the returned function is called."""
        ...

    @property
    def silent_seconds(self) -> float:
        """Since the service was last heard of. While nothing is wrong that is less than half a session."""
        ...

    async def probe(self) -> None:
        """Returns when the service has answered and could commit something.

        Raises CoordinationUnavailable with the reason otherwise. A service that hangs answers neither way:
        whoever asks sets a limit.
        """
        ...

    async def start(self) -> None:
        """Connect. Raises CoordinationUnavailable, with what to check, if that cannot be done in time."""
        ...

    async def close(self) -> None:
        """End the session: membership and controller go at once."""
        ...

    async def claim_cluster_id(self, proposed: str, *, directories_empty: bool) -> str:
        """The cluster's id. Made once, of `proposed`, and only by a broker with empty directories.

        Raises ClusterIdMissing when there is none and the directories hold data.
        """
        ...

    async def register(self, broker_id: BrokerId, description: bytes) -> BrokerEpoch:
        """Become a member. Each registration of an id gets an epoch above every earlier one."""
        ...

    async def deregister(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        """Leave, if `epoch` is still the one that is registered; otherwise nothing happens."""
        ...

    async def members(self) -> Mapping[BrokerId, Member]: ...

    def watch_members(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after each change of membership, until the returned function is called."""
        ...

    async def note_versions(self, broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        """Remember which version each log directory of a broker has come to, until the broker says more.

        Nobody else is told. Raises CoordinationUnavailable if it may not have been done.
        """
        ...

    async def versions(self, broker_id: BrokerId) -> Mapping[UUID, int]:
        """What was noted last, by whichever process of that broker; empty if nothing was."""
        ...

    async def claim_controller(
        self, broker_id: BrokerId, *, deposing: ControllerEpoch | None = None
    ) -> ControllerEpoch:
        """Depose the active controller and enter it, in one step. The epoch is above all before it.

        `deposing` is the epoch that the caller believes to be over (-1: no controller was ever active).
        Raises ControllerFenced if a later one has begun, so that of many who want to succeed one does. Raises
        CoordinationUnavailable if the session is not connected, or the outcome cannot be told.
        """
        ...

    async def active_controller(self) -> ActiveController | None:
        """Who is the active controller, with the latest epoch; None while nobody is, or its holder's session
        ended."""
        ...

    async def latest_epoch(self) -> ControllerEpoch:
        """The epoch that was given last, -1 if none was: what `claim_controller` may depose."""
        ...

    def watch_controller(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after the controllership was entered or left, until the returned function is
        called."""
        ...

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        """Commit `batch` at `sequence`, which must be the end of what is committed.

        Returns when the batch is durable. Raises ControllerFenced if `epoch` is no longer the active
        controller, SequenceTaken if the sequence is below the end, CommitUnknown if the outcome cannot be
        told, CoordinationUnavailable if nothing was tried, DiskFull if it was refused for lack of room.
        """
        ...

    async def end(self) -> int:
        """The sequence that the next batch gets."""
        ...

    async def read(self, from_sequence: int) -> Sequence[CommittedBatch]:
        """Committed batches from the one at `from_sequence` on, in order; possibly only the first ones.

        An empty answer means that nothing is committed there yet.
        """
        ...

    async def start_offset(self) -> int:
        """The sequence of the oldest batch that can still be read: what is below it was trimmed."""
        ...

    async def snapshot(self) -> SnapshotPointer | None: ...

    async def move_snapshot(self, pointer: SnapshotPointer, epoch: ControllerEpoch) -> None:
        """Say that `pointer.holders` hold this snapshot. Fenced like `append`: ControllerFenced."""
        ...

    async def trim(self, before: int, epoch: ControllerEpoch) -> None:
        """Delete batches that lie wholly below `before`, never the last one. Fenced like `append`."""
        ...
