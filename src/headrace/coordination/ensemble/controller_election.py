"""The controllership: an ephemeral node that says who, and a lasting one that says since which epoch.

The second is the fence. Every commit checks its version in the same write, so that nobody commits after
a successor has entered. The first is a hint for those who look for the controller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.coordination.ensemble.paths import Paths
from headrace.coordination.ensemble.requests import ConnectionBroken, Refused, Stored, get, stored
from headrace.coordination.ensemble.session import Session
from headrace.core.ids import BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ActiveController,
    ControllerFenced,
    CoordinationUnavailable,
    SessionState,
)

NEVER = ControllerEpoch(-1)
_ATTEMPTS = 20


class Term(NamedTuple):
    """Our own term. `fence` is the version that `/controller_epoch` has while it lasts."""

    epoch: ControllerEpoch
    fence: int


class _Sight(NamedTuple):
    epoch: ControllerEpoch
    fence: int | None
    """None: no controller was ever active."""
    occupied: bool


class ControllerElection:
    def __init__(self, session: Session, paths: Paths) -> None:
        self._session = session
        self._paths = paths
        self._term: Term | None = None
        session.watch(self._on_session)

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.LOST:
            self._term = None

    def require(self, epoch: ControllerEpoch) -> Term:
        """The term in which `epoch` is ours, as far as this process knows. Its fence settles the rest."""
        if self._term is None or self._term.epoch != epoch:
            raise ControllerFenced(f"controller epoch {epoch} is over, or was never ours")
        return self._term

    def lost(self, term: Term) -> ControllerFenced:
        """A successor's fence was met: give up the term. The error is for the caller to raise."""
        if self._term == term:
            self._term = None
        return ControllerFenced(f"another broker has become controller: epoch {term.epoch} is over")

    async def confirm(self, term: Term) -> None:
        """Ask whether the term still lasts, without writing anything."""
        (answer,) = await self._session.ask_latest(get(self._paths.controller_epoch))
        node = stored(answer)
        if node is None or node.version != term.fence:
            raise self.lost(term)

    async def take(self, broker_id: BrokerId, deposing: ControllerEpoch | None) -> ControllerEpoch:
        self._session.require_connected()
        number = self._session.number
        for _ in range(_ATTEMPTS):
            sight = await self._look()
            if deposing is not None and deposing != sight.epoch:
                raise ControllerFenced(
                    f"controller epoch {sight.epoch} has begun, {deposing} is over already"
                )
            epoch = ControllerEpoch(sight.epoch + 1)
            try:
                results = await self._session.commit(*self._entering(broker_id, epoch, sight))
                fence = 0 if sight.fence is None else results[0].version
            except Refused:
                continue  # somebody entered, or the holder's node went, since we looked
            except ConnectionBroken:
                fence = await self._settle(epoch)
            if number != self._session.number:
                raise CoordinationUnavailable("the ZooKeeper session ended while becoming controller")
            self._term = Term(epoch, fence)
            return epoch
        raise CoordinationUnavailable("others keep becoming controller at the same moment")

    def _entering(
        self, broker_id: BrokerId, epoch: ControllerEpoch, sight: _Sight
    ) -> list[Callable[[Any], None]]:
        """Raise the epoch and replace the holder, living or not, in one write."""
        paths = self._paths
        raised = b"%d" % epoch
        holder = json.dumps({"version": 1, "brokerid": broker_id, "epoch": epoch}).encode()
        operations: list[Callable[[Any], None]] = []
        if sight.fence is None:
            operations.append(lambda transaction: transaction.create(paths.controller_epoch, raised))
        else:
            fence = sight.fence
            operations.append(lambda transaction: transaction.set_data(paths.controller_epoch, raised, fence))
        if sight.occupied:
            operations.append(lambda transaction: transaction.delete(paths.controller))
        operations.append(lambda transaction: transaction.create(paths.controller, holder, ephemeral=True))
        return operations

    async def _settle(self, epoch: ControllerEpoch) -> int:
        """The connection broke while becoming controller. Whoever comes back as the owner has taken it."""
        holder, raised = await self._look_when_connected()
        if (
            holder is not None
            and raised is not None
            and holder.owner == self._session.id
            and int(raised.data) == epoch
        ):
            return raised.version
        raise CoordinationUnavailable("the connection broke while becoming controller, and it was not taken")

    async def _look_when_connected(self) -> tuple[Stored | None, Stored | None]:
        seconds = self._session.timeout_ms / 1000
        try:
            async with asyncio.timeout(seconds):
                while True:
                    await self._session.connected(seconds)
                    try:
                        answers = await self._session.ask_latest(
                            get(self._paths.controller), get(self._paths.controller_epoch)
                        )
                        return stored(answers[0]), stored(answers[1])
                    except ConnectionBroken:
                        continue
        except TimeoutError:
            raise CoordinationUnavailable("it is not known whether the controllership was taken") from None

    async def _look(self) -> _Sight:
        answers = await self._session.ask_latest(
            get(self._paths.controller_epoch), get(self._paths.controller)
        )
        epoch, holder = map(stored, answers)
        if epoch is None:
            return _Sight(NEVER, None, holder is not None)
        return _Sight(ControllerEpoch(int(epoch.data)), epoch.version, holder is not None)

    async def active_controller(self) -> ActiveController | None:
        (answer,) = await self._session.ask_latest(get(self._paths.controller))
        holder = stored(answer)
        if holder is None:
            return None
        told = json.loads(holder.data)
        return ActiveController(BrokerId(told["brokerid"]), ControllerEpoch(told["epoch"]))

    async def latest_epoch(self) -> ControllerEpoch:
        return (await self._look()).epoch
