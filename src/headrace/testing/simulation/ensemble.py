"""A coordination service in memory that fails as a real one does: sessions, their loss, and doubt.

The ensemble is the truth: batches, members, controller, sessions. A process reaches it through a handle of
its own (`coordination.py`), over a connection that takes time and can be cut. A session outlives its
connection, and its process, by the session timeout. While the quorum is lost nothing is answered and no
session expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final
from uuid import UUID

from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ActiveController,
    ClusterIdMissing,
    CommittedBatch,
    ControllerFenced,
    Member,
    SequenceTaken,
    SnapshotPointer,
)
from headrace.protocol.batch import read_header

if TYPE_CHECKING:
    from headrace.testing.simulation.coordination import SimulatedCoordination

READ_BATCHES: Final = 16
"""How many batches one `read` answers with at most."""


@dataclass(slots=True)
class EnsembleSettings:
    """All times in seconds. With the defaults nothing takes time and nothing fails."""

    session_timeout: float = 6.0
    most_delay: float = 0.0
    """Of a request, and again of its answer."""
    most_watch_delay: float = 0.0
    drop_chance: float = 0.0
    """That the connection breaks under a request: it is not carried out, and its sender cannot know."""
    lost_answer_chance: float = 0.0
    """That the connection breaks under an answer: the request is carried out, and its sender cannot know."""


class Session:
    """Lives at the ensemble. Ends when it is closed, or when nothing was heard of it for too long."""

    __slots__ = ("handle", "is_alive", "number", "silent_since")

    def __init__(self, number: int, handle: SimulatedCoordination) -> None:
        self.number = number
        self.handle = handle
        self.is_alive = True
        self.silent_since = 0
        """Changes with each silence, so that an expiry that was overtaken can be told."""


class SimulatedEnsemble:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        random: Random | None = None,
        settings: EnsembleSettings | None = None,
    ) -> None:
        self.loop = loop
        self.random = random or Random(0)
        self.settings = settings or EnsembleSettings()
        self.is_available = True
        self.on_event: Callable[[str], None] = lambda _text: None
        self.cluster_id: str | None = None
        self.batches: list[CommittedBatch] = []
        self.ever: dict[int, bytes] = {}
        """Every batch that was ever committed, trimmed or not, by its sequence: for those who compare."""
        self.end = 0
        self.epoch = ControllerEpoch(-1)
        self.snapshot: SnapshotPointer | None = None
        self.active_controller: ActiveController | None = None
        self.commits = 0
        """Writes of any kind, as a server would count them."""
        self._controller_session: Session | None = None
        self._members: dict[BrokerId, tuple[Member, Session]] = {}
        self.versions: dict[BrokerId, dict[UUID, int]] = {}
        self._sessions: dict[int, Session] = {}
        self._handles: dict[SimulatedCoordination, None] = {}
        self._zxid = 0

    # --- sessions ---

    def attach(self, handle: SimulatedCoordination) -> None:
        self._handles[handle] = None

    def new_session(self, handle: SimulatedCoordination) -> Session:
        session = Session(self._next_zxid(), handle)
        self._sessions[session.number] = session
        return session

    def silence(self, session: Session) -> None:
        """Nothing is heard of it from now on. Its last sign of life may have been a while ago."""
        session.silent_since += 1
        timeout = self.settings.session_timeout
        seconds = timeout - self.random.uniform(0.0, timeout * 0.3)
        self.loop.call_later(seconds, self._maybe_expire, session, session.silent_since)

    def heard(self, session: Session) -> None:
        session.silent_since += 1

    def _maybe_expire(self, session: Session, silence: int) -> None:
        if session.silent_since != silence or not session.is_alive:
            return
        if not self.is_available:
            self.silence(session)  # nobody is there to notice
            return
        self.on_event(f"session {session.number} of {session.handle.name} expires")
        self.end_session(session)

    def end_session(self, session: Session) -> None:
        session.is_alive = False
        self._sessions.pop(session.number, None)
        if self._controller_session is session:
            self._controller_session = self.active_controller = None
            self._tell("controller")
        gone = [broker_id for broker_id, (_, owner) in self._members.items() if owner is session]
        for broker_id in gone:
            del self._members[broker_id]
        if gone:
            self._tell("members")

    # --- faults ---

    def lose_quorum(self) -> None:
        self.is_available = False
        self.on_event("quorum lost")
        for handle in self._handles:
            handle.on_connection_broken(self.random.uniform(0.0, 0.5))

    def regain_quorum(self) -> None:
        """Every session has its full time to come back."""
        self.is_available = True
        self.on_event("quorum back")
        for session in list(self._sessions.values()):
            self.silence(session)
        for handle in self._handles:
            handle.on_path_whole()

    def expire_all(self) -> None:
        """As if every process had ended long ago."""
        for session in list(self._sessions.values()):
            self.end_session(session)

    # --- what a server does with one request; each is one atomic step ---

    def claim_cluster_id(self, proposed: str, directories_empty: bool) -> str:
        if self.cluster_id is None:
            if not directories_empty:
                raise ClusterIdMissing("the log directories hold data, and the ensemble has no cluster id")
            self._next_zxid()
            self.cluster_id = proposed
        return self.cluster_id

    def register(self, session: Session, broker_id: BrokerId, description: bytes) -> BrokerEpoch:
        epoch = BrokerEpoch(self._next_zxid())
        self._members[broker_id] = (Member(broker_id, epoch, description), session)
        self.on_event(f"broker {broker_id} registers with epoch {epoch}")
        self._tell("members")
        return epoch

    def deregister(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        found = self._members.get(broker_id)
        if found is not None and found[0].epoch == epoch:
            self._next_zxid()
            del self._members[broker_id]
            self._tell("members")

    def members(self) -> dict[BrokerId, Member]:
        return {broker_id: member for broker_id, (member, _) in sorted(self._members.items())}

    def note_versions(self, broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        self._next_zxid()
        self.versions[broker_id] = dict(versions)

    def claim_controller(
        self, session: Session, broker_id: BrokerId, deposing: ControllerEpoch | None
    ) -> ControllerEpoch:
        if deposing is not None and deposing != self.epoch:
            raise ControllerFenced(f"controller epoch {self.epoch} has begun, {deposing} is over already")
        self._next_zxid()
        self.epoch = ControllerEpoch(self.epoch + 1)
        self.active_controller = ActiveController(broker_id, self.epoch)
        self._controller_session = session
        self.on_event(f"broker {broker_id} becomes controller with epoch {self.epoch}")
        self._tell("controller")
        return self.epoch

    def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        self.require_epoch(epoch)
        if sequence < self.end:
            raise SequenceTaken(f"sequence {sequence} is committed; the end is {self.end}")
        header = read_header(batch)
        if sequence != self.end or header.base_offset != sequence:
            raise ValueError(f"batch {header.base_offset} at sequence {sequence}: the end is {self.end}")
        self._next_zxid()
        self.batches.append(CommittedBatch(sequence, bytes(batch)))
        self.ever[sequence] = bytes(batch)
        self.end = header.next_offset

    def require_epoch(self, epoch: ControllerEpoch) -> None:
        """The epoch fences, not the node: whoever was given the latest epoch may still commit."""
        if epoch != self.epoch:
            raise ControllerFenced(f"controller epoch {epoch} is over, {self.epoch} is the latest")

    def read(self, from_sequence: int) -> list[CommittedBatch]:
        found = [batch for batch in self.batches if batch.sequence >= from_sequence]
        return found[:READ_BATCHES]

    def start_offset(self) -> int:
        return self.batches[0].sequence if self.batches else self.end

    def move_snapshot(self, pointer: SnapshotPointer, epoch: ControllerEpoch) -> None:
        self.require_epoch(epoch)
        self._next_zxid()
        self.snapshot = pointer

    def trim(self, before: int, epoch: ControllerEpoch) -> None:
        self.require_epoch(epoch)
        if before > self.end:
            raise ValueError(f"nothing is committed at {before} yet")
        self._next_zxid()
        while len(self.batches) > 1 and self.batches[1].sequence <= before:
            del self.batches[0]

    # --- ---

    def _next_zxid(self) -> int:
        self.commits += 1
        self._zxid += 1
        return self._zxid

    def _tell(self, subject: str) -> None:
        for handle in self._handles:
            handle.on_changed(subject)
