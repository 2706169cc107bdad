"""How one simulated process reaches the simulated ensemble: `core.ports_coordination.Coordination`.

A request that was sent is carried out by the ensemble even if its process dies before the answer. A silent
connection is noticed only after a while, and the session may have expired by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar
from uuid import UUID

from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ActiveController,
    CommittedBatch,
    CommitUnknown,
    ControllerFenced,
    CoordinationUnavailable,
    Member,
    SessionState,
    SnapshotPointer,
)
from headrace.testing.simulation.ensemble import Session, SimulatedEnsemble

T = TypeVar("T")

CONNECT_SECONDS: Final = 10.0


class _Request:
    __slots__ = ("carry_out", "future", "unknown")

    def __init__(
        self, carry_out: Callable[[], Any], future: asyncio.Future[Any], unknown: HeadraceError
    ) -> None:
        self.carry_out = carry_out
        self.future = future
        self.unknown = unknown
        """What the sender is told when the connection breaks under it."""

    def carry_out_quietly(self) -> None:
        with suppress(Exception):
            self.carry_out()


class SimulatedCoordination:
    def __init__(self, ensemble: SimulatedEnsemble, loop: asyncio.AbstractEventLoop, name: str = "") -> None:
        self.name = name
        self._ensemble = ensemble
        self._loop = loop
        self._session: Session | None = None
        self._state = SessionState.SUSPENDED
        self._own_epoch: ControllerEpoch | None = None
        """Of the controllership that this session was given; the ensemble has the last word."""
        self._is_path_whole = True
        self._is_closed = False
        self._breaks = 0
        """How often the connection broke: what was planned for an earlier connection is void."""
        self._in_flight: dict[_Request, None] = {}
        self._unserved: list[_Request] = []
        """Sent into a cut that nobody has noticed yet."""
        self._watchers: dict[str, list[Callable[[], None]]] = {"members": [], "controller": []}
        self._session_watchers: list[Callable[[SessionState], None]] = []
        ensemble.attach(self)

    # --- faults ---

    def cut(self) -> None:
        """The ensemble is out of reach, in silence. It sees the same of a process that is stopped or dead."""
        if not self._is_path_whole:
            return
        self._is_path_whole = False
        if self._session is not None:
            self._ensemble.silence(self._session)
        timeout = self._ensemble.settings.session_timeout
        late = self._ensemble.random.random() < 0.1
        share = self._ensemble.random.uniform(0.7, 1.5) if late else self._ensemble.random.uniform(0.3, 0.67)
        self._loop.call_later(timeout * share, self._on_silence, self._breaks)

    def heal(self) -> None:
        if not self._is_path_whole:
            self._is_path_whole = True
            self.on_path_whole()

    def die(self) -> None:
        """The process has ended without a word. Its session lives on for its time."""
        self.cut()
        self._is_closed = True
        self._state = SessionState.SUSPENDED

    # --- the connection ---

    @property
    def _reaches(self) -> bool:
        return self._is_path_whole and self._ensemble.is_available and not self._is_closed

    def _on_silence(self, breaks: int) -> None:
        if breaks == self._breaks and not self._reaches:
            self._suspend()

    def on_connection_broken(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._suspend_if, self._breaks)

    def _suspend_if(self, breaks: int) -> None:
        if breaks == self._breaks:
            self._suspend()

    def _suspend(self) -> None:
        """The connection is given up. What was asked over it may or may not have happened."""
        if self._state is not SessionState.CONNECTED or self._is_closed:
            return
        self._breaks += 1
        self._change(SessionState.SUSPENDED)
        in_flight, self._in_flight = self._in_flight, {}
        self._unserved.clear()
        for request in in_flight:
            if not request.future.done():
                request.future.set_exception(request.unknown)
        if self._session is not None and self._reaches:
            self._ensemble.silence(self._session)
        self._plan_reconnect()

    def on_path_whole(self) -> None:
        if self._is_closed or not self._reaches:
            return
        if self._state is SessionState.CONNECTED:
            # Nobody noticed the cut: what was sent into it arrives now.
            assert self._session is not None
            if not self._session.is_alive:
                self.on_connection_broken(self._ensemble.random.uniform(0.0, 0.1))
            self._ensemble.heard(self._session)
            for subject in self._watchers:
                self.on_changed(subject)
            unserved, self._unserved = self._unserved, []
            for request in unserved:
                self._travel(self._serve, request)
        else:
            self._plan_reconnect()

    def _plan_reconnect(self) -> None:
        self._breaks += 1
        seconds = self._ensemble.random.uniform(0.02, 0.5)
        self._loop.call_later(seconds, self._reconnect, self._breaks)

    def _reconnect(self, breaks: int) -> None:
        if breaks != self._breaks or not self._reaches or self._state is SessionState.CONNECTED:
            return
        if self._session is not None and not self._session.is_alive:
            self._session = None
            self._own_epoch = None
            self._change(SessionState.LOST)
        self._connect()

    def _connect(self) -> None:
        if self._session is None:
            self._session = self._ensemble.new_session(self)
        self._ensemble.heard(self._session)
        self._change(SessionState.CONNECTED)
        for subject in self._watchers:
            self.on_changed(subject)

    def _change(self, state: SessionState) -> None:
        self._state = state
        for changed in tuple(self._session_watchers):
            self._loop.call_soon(changed, state)

    # --- requests ---

    async def _ask(self, carry_out: Callable[[], T], unknown: HeadraceError | None = None) -> T:
        if self._state is not SessionState.CONNECTED:
            raise CoordinationUnavailable(f"the session of {self.name} is {self._state.value}")
        future: asyncio.Future[T] = self._loop.create_future()
        doubt = unknown or CoordinationUnavailable("the connection to the ensemble broke under a request")
        request = _Request(carry_out, future, doubt)
        self._in_flight[request] = None
        self._travel(self._serve, request)
        return await future

    def _travel(self, arrive: Callable[[_Request], None], request: _Request) -> None:
        """On the ensemble's own loop: what was sent goes on without its sender."""
        most = self._ensemble.settings.most_delay
        if most:
            self._ensemble.loop.call_later(self._ensemble.random.uniform(0.0, most), arrive, request)
        else:
            self._ensemble.loop.call_soon(arrive, request)

    def _serve(self, request: _Request) -> None:
        settings, random = self._ensemble.settings, self._ensemble.random
        session = self._session
        if self._is_closed or request not in self._in_flight:
            # Its sender has died, or given it up. It was on its way: it happens, or it does not, but never
            # after a later request of the same session.
            reached = self._ensemble.is_available and session is not None and session.is_alive
            if reached and self._state is not SessionState.CONNECTED and random.random() < 0.5:
                request.carry_out_quietly()
            return
        if not self._is_path_whole or not self._ensemble.is_available:
            self._unserved.append(request)
            return
        if session is None or not session.is_alive:
            self._suspend_if(self._breaks)
            return
        if settings.drop_chance and random.random() < settings.drop_chance:
            self._loop.call_soon(self._suspend_if, self._breaks)
            return
        try:
            result, error = request.carry_out(), None
        except Exception as refusal:
            result, error = None, refusal
        if settings.lost_answer_chance and random.random() < settings.lost_answer_chance:
            self._loop.call_soon(self._suspend_if, self._breaks)
            return
        seconds = random.uniform(0.0, settings.most_delay)
        if seconds:
            self._loop.call_later(seconds, self._answer, request, result, error)
        else:
            self._loop.call_soon(self._answer, request, result, error)

    def _answer(self, request: _Request, result: Any, error: Exception | None) -> None:
        if request not in self._in_flight:
            return
        del self._in_flight[request]
        if request.future.done():
            return
        if error is None:
            request.future.set_result(result)
        else:
            request.future.set_exception(error)

    # --- watches ---

    def on_changed(self, subject: str) -> None:
        if self._state is not SessionState.CONNECTED or not self._is_path_whole:
            return  # told when it is back
        seconds = self._ensemble.random.uniform(0.0, self._ensemble.settings.most_watch_delay)
        if seconds:
            self._loop.call_later(seconds, self._tell, subject)
        else:
            self._tell(subject)

    def _tell(self, subject: str) -> None:
        for changed in tuple(self._watchers[subject]):
            changed()

    # --- the port ---

    @property
    def session_timeout_ms(self) -> int:
        return int(self._ensemble.settings.session_timeout * 1000)

    @property
    def session(self) -> SessionState:
        return self._state

    def watch_session(self, changed: Callable[[SessionState], None]) -> Callable[[], None]:
        return _watch(self._session_watchers, changed)

    @property
    def silent_seconds(self) -> float:
        """Not counted: only the page and the report of a real broker tell it."""
        return 0.0

    async def probe(self) -> None:
        await self._ask(lambda: None)

    async def start(self) -> None:
        waited = 0.0
        while not self._reaches:
            if waited >= CONNECT_SECONDS:
                raise CoordinationUnavailable("the ensemble cannot be reached")
            waited += 0.1
            await asyncio.sleep(0.1)
        if self._state is not SessionState.CONNECTED:
            self._connect()

    async def close(self) -> None:
        self._is_closed = True
        if self._session is not None and self._is_path_whole and self._ensemble.is_available:
            self._ensemble.end_session(self._session)
        self._state = SessionState.LOST

    async def claim_cluster_id(self, proposed: str, *, directories_empty: bool) -> str:
        return await self._ask(lambda: self._ensemble.claim_cluster_id(proposed, directories_empty))

    async def register(self, broker_id: BrokerId, description: bytes) -> BrokerEpoch:
        return await self._ask(lambda: self._ensemble.register(self._live(), broker_id, description))

    def _live(self) -> Session:
        assert self._session is not None
        return self._session

    async def deregister(self, broker_id: BrokerId, epoch: BrokerEpoch) -> None:
        await self._ask(lambda: self._ensemble.deregister(broker_id, epoch))

    async def members(self) -> Mapping[BrokerId, Member]:
        return await self._ask(self._ensemble.members)

    def watch_members(self, changed: Callable[[], None]) -> Callable[[], None]:
        return _watch(self._watchers["members"], changed)

    async def note_versions(self, broker_id: BrokerId, versions: Mapping[UUID, int]) -> None:
        await self._ask(lambda: self._ensemble.note_versions(broker_id, versions))

    async def versions(self, broker_id: BrokerId) -> Mapping[UUID, int]:
        return await self._ask(lambda: self._ensemble.versions.get(broker_id, {}))

    async def claim_controller(
        self, broker_id: BrokerId, *, deposing: ControllerEpoch | None = None
    ) -> ControllerEpoch:
        epoch = await self._ask(lambda: self._ensemble.claim_controller(self._live(), broker_id, deposing))
        self._own_epoch = epoch
        return epoch

    def _require_active(self, epoch: ControllerEpoch) -> None:
        if epoch != self._own_epoch:
            raise ControllerFenced(f"controller epoch {epoch} is over, or was never ours")

    async def active_controller(self) -> ActiveController | None:
        return await self._ask(lambda: self._ensemble.active_controller)

    async def latest_epoch(self) -> ControllerEpoch:
        return await self._ask(lambda: self._ensemble.epoch)

    def watch_controller(self, changed: Callable[[], None]) -> Callable[[], None]:
        return _watch(self._watchers["controller"], changed)

    async def append(self, sequence: int, batch: bytes, epoch: ControllerEpoch) -> None:
        self._require_active(epoch)
        kept = bytes(batch)
        doubt = CommitUnknown(f"the connection broke under the commit at {sequence}")
        await self._ask(lambda: self._ensemble.append(sequence, kept, epoch), doubt)

    async def end(self) -> int:
        return await self._ask(lambda: self._ensemble.end)

    async def read(self, from_sequence: int) -> Sequence[CommittedBatch]:
        return await self._ask(lambda: self._ensemble.read(from_sequence))

    async def start_offset(self) -> int:
        return await self._ask(self._ensemble.start_offset)

    async def snapshot(self) -> SnapshotPointer | None:
        return await self._ask(lambda: self._ensemble.snapshot)

    async def move_snapshot(self, pointer: SnapshotPointer, epoch: ControllerEpoch) -> None:
        self._require_active(epoch)
        await self._ask(lambda: self._ensemble.move_snapshot(pointer, epoch))

    async def trim(self, before: int, epoch: ControllerEpoch) -> None:
        self._require_active(epoch)
        await self._ask(lambda: self._ensemble.trim(before, epoch))


W = TypeVar("W")


def _watch(watchers: list[W], changed: W) -> Callable[[], None]:
    watchers.append(changed)

    def stop() -> None:
        if changed in watchers:
            watchers.remove(changed)

    return stop
