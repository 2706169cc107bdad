"""What a broker does while it is the active controller: registers members, fences the dead, unfences those
who caught up.

The decisions are the machine's, and who is dead is for `controller/liveness.py` to say. This is the shell:
it hears of members, fetches and broken connections, and submits operations. Each duty has a task of its own
(`duty.py`): whatever another one stumbles over or waits for, the dead are fenced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from headrace.broker.cluster import description
from headrace.broker.cluster.balancing_decisions import BalancingDecisions
from headrace.broker.cluster.controller_duty import Duty
from headrace.broker.cluster.fencings import Fencings
from headrace.broker.cluster.lifecycle import MetadataPosition
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.self_balancing import SelfBalancing
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.brokers import BrokerDescription
from headrace.controller.image import DEFAULT_BROKER, BrokerRegistration
from headrace.controller.liveness import Liveness
from headrace.controller.operations import ConfigChange, ConfigOp
from headrace.controller.policy import MIN_INSYNC_REPLICAS
from headrace.controller.shell import Controller
from headrace.core.errors import HeadraceError, NotController
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.core.ports_coordination import (
    ControllerFenced,
    Coordination,
    CoordinationUnavailable,
    Member,
    SessionState,
    SnapshotPointer,
)
from headrace.core.ports_network import PeerRefused, PeerUnavailable
from headrace.core.tasks import spawn

PROBES: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Pauses before each try to reach a broker whose connection broke: a process that dies closes its sockets one
by one, so the first try may still get through."""
PROBE_SECONDS: Final = 1.0
TICKS_PER_SESSION: Final = 8
ENOUGH_HOLDERS: Final = 3


_NOWHERE: Final = (-1, MetadataPosition(-1, -1))


class ControllerDuties:
    """Of one term."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        controller: Controller,
        own_epoch: Callable[[], BrokerEpoch],
        coordination: Coordination,
        fencings: Fencings,
        decisions: BalancingDecisions,
    ) -> None:
        self._runtime = runtime
        self._fencings = fencings
        self._metadata = metadata
        self._controller = controller
        self._own_epoch = own_epoch
        self._coordination = coordination
        self._session = coordination.session_timeout_ms / 1000
        self._liveness = Liveness(runtime.broker_id, self._session, runtime.loop.time())
        self._members: Mapping[BrokerId, Member] = {}
        self._members_changed = True
        self._positions: dict[int, tuple[int, MetadataPosition]] = {}
        """Broker epoch and position of each broker's last fetch."""
        self._required = metadata.store.end
        """A fenced broker must have the metadata up to here before it may lead anything."""
        self._raising = 0
        """How many commits are under way that raise it."""
        self._refused: dict[int, BrokerEpoch] = {}
        """Registrations that cannot be accepted, by their epoch: said once."""
        self._probing: dict[int, asyncio.Task[None]] = {}
        self._connections: dict[int, object] = {}
        self._next_balance = 0.0
        self._trimmed = 0
        balancing = SelfBalancing(runtime, metadata, controller, decisions)
        self._duties = [
            Duty(name, act, runtime, controller, self._session / TICKS_PER_SESSION)
            for name, act in (
                ("fencing", self._fence_dead),
                ("agreement on min.insync.replicas", self._agree_on_min_isr),
                ("registration", self._register_new),
                ("unfencing", self._unfence_ready),
                ("leader balance", self._balance),
                ("metadata trimming", self._trim),
                ("self-balancing", balancing.act),
            )
        ]

    def start(self, deposed: int) -> None:
        """`deposed` was the active controller before: if its port refuses, it need not be waited for."""
        self._stop_watching = [
            self._coordination.watch_members(self._on_members),
            self._coordination.watch_session(self._on_session),
        ]
        interval = self._runtime.config.leader_imbalance_check_interval_seconds
        self._next_balance = self._runtime.loop.time() + interval
        for duty in self._duties:
            duty.start()
        if deposed != self._runtime.broker_id:
            self.probe(deposed)

    async def stop(self) -> None:
        for stop in self._stop_watching:
            stop()
        ending: list[asyncio.Task[None]] = [*self._probing.values()]
        for task in ending:
            task.cancel()
        for duty in self._duties:
            ending += duty.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def _wake(self) -> None:
        for duty in self._duties:
            duty.wake()

    # --- what is heard ----------------------------------------------------------------------------------

    def on_fetch(self, broker_id: int, epoch: int, position: MetadataPosition, connection: object) -> None:
        """A broker asked for more metadata: it lives."""
        registration = self._metadata.image.brokers.get(broker_id)
        if registration is None or registration.epoch != epoch:
            return
        self._liveness.heard(broker_id, self._runtime.loop.time())
        self._positions[broker_id] = (epoch, position)
        self._connections[broker_id] = connection
        if registration.fenced and position.applied >= self._required:
            self._wake()

    def on_disconnect(self, broker_id: int, connection: object) -> None:
        if self._connections.get(broker_id) is connection:
            self.probe(broker_id)

    def has_applied(self, offset: int) -> bool:
        """Every broker that lives has applied the metadata below `offset`."""
        return all(
            self._positions.get(broker_id, _NOWHERE)[1].applied >= offset
            for broker_id, registration in self._metadata.image.brokers.items()
            if not registration.fenced and broker_id != self._runtime.broker_id
        )

    def _on_members(self) -> None:
        self._members_changed = True
        self._wake()

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._liveness.coordination_back(self._runtime.loop.time())
            self._on_members()
        elif state is SessionState.LOST:
            self._controller.resign(ControllerFenced("the session ended, and the controllership with it"))

    # --- suspicion --------------------------------------------------------------------------------------

    def probe(self, broker_id: int) -> None:
        if broker_id not in self._probing:
            task = self._probing[broker_id] = spawn(f"probe of broker {broker_id}", self._probe(broker_id))
            task.add_done_callback(lambda _: self._probing.pop(broker_id, None))

    async def _probe(self, broker_id: int) -> None:
        for pause in PROBES:
            await asyncio.sleep(pause)
            registration = self._metadata.image.brokers.get(broker_id)
            address = self._metadata.address_of(broker_id)
            if registration is None or registration.fenced or address is None:
                return
            try:
                (await self._runtime.environment.dialer.dial(*address, timeout=PROBE_SECONDS)).close()
            except PeerRefused:
                self._liveness.suspect(broker_id)
                self._wake()
                return
            except PeerUnavailable:
                continue

    # --- duties -----------------------------------------------------------------------------------------

    @contextmanager
    def _raising_required(self) -> Iterator[None]:
        """Around a commit after which the fenced must catch up once more."""
        self._raising += 1
        try:
            yield
        finally:
            self._raising -= 1
            self._required = self._metadata.store.end

    async def _read_members(self) -> None:
        if not self._members_changed:
            return
        self._members_changed = False
        try:
            self._members = await self._coordination.members()
        except BaseException:
            self._members_changed = True
            raise
        self._liveness.members({each.broker_id: each.epoch for each in self._members.values()})
        self._wake()

    @property
    def _min_isr_is_agreed(self) -> bool:
        return MIN_INSYNC_REPLICAS in self._metadata.image.configs(DEFAULT_BROKER)

    async def _agree_on_min_isr(self) -> None:
        """Leaders commit by it and the controller elects by it, so all must go by one number: what the file
        of the first controller says holds for the cluster, until somebody sets another. Nobody is registered
        or unfenced before that."""
        if self._min_isr_is_agreed:
            return
        value = str(self._runtime.static_config.min_insync_replicas)
        change = ConfigChange(ConfigOp.SET, MIN_INSYNC_REPLICAS, value)
        (answer,) = await self._controller.incremental_alter_configs([(DEFAULT_BROKER, [change])])
        if answer.error is not None:
            raise answer.error
        self._wake()

    async def _register_new(self) -> None:
        await self._read_members()
        if not self._min_isr_is_agreed:
            return
        defects: list[Exception] = []
        for member in sorted(self._members.values()):
            known = self._metadata.image.brokers.get(member.broker_id)
            if known is not None and known.epoch >= member.epoch:
                continue
            if self._refused.get(member.broker_id) == member.epoch:
                continue
            try:
                told = description.decode(member.broker_id, member.description)
                await self._register(told, member.epoch)
            except (NotController, CoordinationUnavailable, ControllerFenced):
                raise
            except HeadraceError as error:
                self._refused[member.broker_id] = member.epoch
                self._runtime.log.error("registration refused", broker_id=member.broker_id, error=str(error))
            except Exception as error:  # a defect, of this registration: the others need not wait for it
                error.add_note(f"while broker {member.broker_id} was registered")
                defects.append(error)
        if defects:
            raise ExceptionGroup("registrations failed", defects)

    async def _register(self, told: BrokerDescription, epoch: BrokerEpoch) -> None:
        with self._raising_required():
            await self._controller.submit(lambda machine: machine.register_broker(told, epoch))
        self._liveness.heard(told.broker_id, self._runtime.loop.time())
        self._runtime.log.info(
            "broker registered", broker_id=told.broker_id, epoch=epoch, stopped=told.stopped, rack=told.rack
        )

    async def _fence_dead(self) -> None:
        alive = [each.broker_id for each in self._metadata.image.brokers.values() if not each.fenced]
        to_fence = self._liveness.to_fence(alive, self._runtime.loop.time())
        if not to_fence:
            return
        for each in to_fence:
            # Whoever has announced that it stops is missed by nobody.
            stopped = self._metadata.image.brokers[each.broker_id].stopping
            reason = "it was stopped" if stopped else each.reason
            tell = self._runtime.log.info if stopped else self._runtime.log.warning
            tell("broker fenced", broker_id=each.broker_id, reason=reason)
            self._fencings.note(each.broker_id, self._runtime.clock.wall_ms(), reason)
        ids = [BrokerId(each.broker_id) for each in to_fence]
        # If one of them has registered anew before this is decided, the suspicion is not about that one.
        epochs: dict[int, int] = {
            broker_id: self._metadata.image.brokers[broker_id].epoch for broker_id in ids
        }
        with self._raising_required():
            await self._controller.submit(lambda machine: machine.fence_brokers(ids, epochs=epochs))

    async def _unfence_ready(self) -> None:
        if not self._min_isr_is_agreed:
            return
        for registration in list(self._metadata.image.brokers.values()):
            if registration.fenced and self._is_ready(registration):
                broker_id, epoch = registration.broker_id, registration.epoch
                await self._controller.submit(
                    lambda machine, i=broker_id, e=epoch: machine.unfence_broker(i, e)  # type: ignore[misc]  # defaults bind the loop's values
                )
                self._runtime.log.info("broker unfenced", broker_id=broker_id, epoch=epoch)

    def _is_ready(self, registration: BrokerRegistration) -> bool:
        broker_id = registration.broker_id
        if (
            self._raising
            or registration.stopping
            or not self._liveness.is_member(broker_id, registration.epoch)
        ):
            return False
        if broker_id == self._runtime.broker_id:
            return registration.epoch == self._own_epoch()
        epoch, position = self._positions.get(broker_id, _NOWHERE)
        return epoch == registration.epoch and position.applied >= self._required

    async def _balance(self) -> None:
        """Give leaderships back to the preferred replicas, from time to time."""
        now = self._runtime.loop.time()
        if now < self._next_balance:
            return
        self._next_balance = now + self._runtime.config.leader_imbalance_check_interval_seconds
        await self._controller.submit(lambda machine: machine.elect_leaderless())
        while self._runtime.config.auto_leader_rebalance_enable:
            balanced = await self._controller.submit(lambda machine: machine.balance_leaders())
            if not balanced.more:
                return

    async def _trim(self) -> None:
        """Let the service forget what enough brokers hold in a checkpoint."""
        held = {
            broker_id: position.checkpointed
            for broker_id, (epoch, position) in self._positions.items()
            if (known := self._metadata.image.brokers.get(broker_id)) is not None and known.epoch == epoch
        }
        held[self._runtime.broker_id] = self._metadata.store.checkpoint_end
        enough = min(ENOUGH_HOLDERS, len(self._metadata.image.brokers))
        ends = sorted(held.values(), reverse=True)
        if len(ends) < enough or ends[enough - 1] <= self._trimmed:
            return
        end = ends[enough - 1]
        holders = tuple(BrokerId(broker_id) for broker_id, at in sorted(held.items()) if at >= end)
        pointer = SnapshotPointer(end, self._metadata.store.checkpoint_checksum(end), holders)
        await self._coordination.move_snapshot(pointer, self._controller.epoch)
        await self._coordination.trim(end, self._controller.epoch)
        self._trimmed = end
        self._runtime.log.info("metadata trimmed in ZooKeeper", below=end, holders=holders)
