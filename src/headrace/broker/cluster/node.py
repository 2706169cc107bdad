"""This broker's place in the cluster: a member, and either the active controller or a follower of whoever is.

One task decides which. It looks who is the active controller, follows that broker's metadata until the
controller moves or its holder seems gone, and then becomes controller itself if nobody was faster. Nothing
here locks anybody out: epochs do.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from headrace.broker.cluster import description
from headrace.broker.cluster.balancing_decisions import BalancingDecisions
from headrace.broker.cluster.controller_duties import ControllerDuties
from headrace.broker.cluster.fencings import Fencings
from headrace.broker.cluster.following import Ended, MetadataFollower
from headrace.broker.cluster.lifecycle import MetadataPosition, StartHosting
from headrace.broker.cluster.membership import Membership
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.cluster.metadata_end import cut_damaged_end, is_all_there
from headrace.broker.cluster.suspect_brokers import SuspectBrokers
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import Endpoint
from headrace.controller.shell import Controller
from headrace.core.errors import (
    ConfigError,
    CorruptLog,
    DoesNotFollow,
    HeadraceError,
    NotController,
    StorageError,
)
from headrace.core.ids import NO_BROKER, BrokerEpoch, BrokerId, ControllerEpoch
from headrace.core.ports_coordination import (
    ActiveController,
    ControllerFenced,
    Coordination,
    CoordinationUnavailable,
    SessionState,
)
from headrace.core.tasks import spawn
from headrace.log.manager import LogManager
from headrace.network.connection import Connection
from headrace.replication.assignment import concerns_this_process

CONFIRM_SECONDS: Final = 1.0
"""How often the active controller makes sure that it still is; with a short session more often."""
CONFIRMATIONS_PER_SESSION: Final = 8
PAUSE_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 5.0
"""How long a start waits in silence before it says what it waits for."""
HANDOVER_SECONDS: Final = 1.0


class ClusterNode:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        controller: Controller,
        logs: LogManager,
        endpoints: tuple[Endpoint, ...],
        suspicions: SuspectBrokers,
        coordination: Coordination,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._controller = controller
        self._logs = logs
        self._coordination = coordination
        self.endpoints = endpoints
        self._membership = Membership(runtime, metadata, logs, endpoints, coordination)
        self._follower = MetadataFollower(runtime, metadata, self, suspicions)
        self._active_controller: ActiveController | None = None
        self._duties: ControllerDuties | None = None
        self._fencings = Fencings()
        self._fencings.report_to(runtime.health)
        self._decisions = BalancingDecisions(runtime.clock, runtime.log.info)
        self._decisions.report_to(runtime.health)
        self._resigned = asyncio.Event()
        self._host: StartHosting | None = None
        """Until the first row that names this incarnation."""
        self._unfenced = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._register_again = asyncio.Event()
        self._confirmed_at = -math.inf
        """When it was asked last whether this broker is the active controller, and the answer was yes."""

    @property
    def broker_epoch(self) -> BrokerEpoch:
        return self._membership.broker_epoch

    @property
    def controller_id(self) -> int:
        if self._controller.is_active:
            return self._runtime.broker_id
        return NO_BROKER if self._active_controller is None else self._active_controller.holder

    @property
    def controller_epoch(self) -> int:
        return -1 if self._active_controller is None else self._active_controller.epoch

    @property
    def is_current(self) -> bool:
        registration = self._metadata.image.brokers.get(self._runtime.broker_id)
        if registration is None or registration.epoch != self.broker_epoch or registration.fenced:
            # Registered anew, and the metadata has not got there: rows of the time between are passed over.
            return False
        # Nobody is replaced for his silence before his session has ended. Its signs of life are a third of
        # its time apart, so it lasts at least two thirds longer than anything that was heard.
        told_at = self._confirmed_at if self._controller.is_active else self._follower.current_at
        return self._runtime.loop.time() - told_at < self._coordination.session_timeout_ms / 2000

    # --- life -------------------------------------------------------------------------------------------

    async def start(self, host: StartHosting) -> None:
        self._host = host
        self._controller.on_resign(self._on_resign)
        self._metadata.store.subscribe(self._on_delta)
        self._coordination.watch_controller(self._follower.moved.set)
        self._coordination.watch_session(self._on_session)
        await self._register()
        self._tasks = [spawn("the cluster node", self._run()), spawn("registration", self._stay_registered())]
        while not self._unfenced.is_set():
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await self._unfenced.wait()
            except TimeoutError:
                if self._runtime.failure.done():
                    raise self._runtime.failure.result() from None
                self._runtime.log.info(
                    "waiting for the controller to admit this broker",
                    controller=self.controller_id,
                    metadata_end=self._metadata.store.end,
                )

    async def stop(self) -> None:
        self._stopping = True
        await self._end_duties()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._controller.stop()
        await self._coordination.close()

    async def hand_over(self) -> None:
        self._stopping = True  # from now on another one becomes controller
        deadline = self._runtime.loop.time() + HANDOVER_SECONDS
        while (duties := self._duties) is not None and self._runtime.loop.time() < deadline:
            if duties.has_applied(self._metadata.store.end):
                return
            await asyncio.sleep(0.01)

    # --- events -----------------------------------------------------------------------------------------

    def _on_delta(self, _delta: MetadataDelta) -> None:
        """The first row that names this incarnation makes the broker host; until then rows are of others."""
        registration = self._metadata.image.brokers.get(self._runtime.broker_id)
        if registration is not None and registration.epoch > self.broker_epoch:
            self.on_replaced(self.broker_epoch)
        epoch = None if registration is None else registration.epoch
        if not concerns_this_process(epoch, self.broker_epoch, self._runtime.environment.safeguards):
            return
        if self._host is not None:
            host, self._host = self._host, None
            host({})
        if registration is not None and not registration.fenced:
            self._unfenced.set()

    def on_replaced(self, epoch: BrokerEpoch) -> None:
        """The cluster knows a later incarnation than `epoch`. If that is not this process, this one is of no
        use any more, and could only fight for the controllership with the one that has its name."""
        if epoch == self.broker_epoch and not self._membership.is_registering:
            broker_id = self._runtime.broker_id
            self._runtime.give_up(
                ConfigError(
                    f"another process has registered as broker {broker_id}: each needs its own broker.id"
                )
            )

    def _on_session(self, state: SessionState) -> None:
        self._runtime.log.info("ZooKeeper session", state=state.value)
        self._follower.moved.set()
        if state is SessionState.LOST:
            self._register_again.set()

    def _on_resign(self, error: HeadraceError) -> None:
        if not isinstance(error, NotController):
            self._runtime.give_up(StorageError(f"the metadata cannot be kept: {error}"))
        self._resigned.set()
        self._follower.moved.set()

    def on_metadata_fetch(
        self, broker_id: int, epoch: int, position: MetadataPosition, connection: Connection
    ) -> None:
        if connection.on_close is None:
            connection.on_close = lambda: self.on_disconnect(broker_id, connection)
        if self._duties is not None:
            self._duties.on_fetch(broker_id, epoch, position, connection)

    def on_disconnect(self, broker_id: int, connection: object) -> None:
        if self._duties is not None:
            self._duties.on_disconnect(broker_id, connection)

    async def _stay_registered(self) -> None:
        while True:
            await self._register_again.wait()
            self._register_again.clear()
            try:
                await self._register()
            except Exception as error:  # it would be a member that never acts
                self._runtime.log.error("broker registration failed", error=repr(error), exc_info=error)
                self._runtime.give_up(StorageError(f"this broker broker registration failed: {error!r}"))
                return

    async def _register(self) -> None:
        """For as long as it takes: a connection that breaks ends no broker, also not one that starts."""
        said = ""
        # Without a disk it would say that its disk is gone, and what is on it be given up: it is about to end
        # instead.
        while not self._stopping and self._logs.online():
            try:
                await self._membership.register()
                return
            except CoordinationUnavailable as error:
                if str(error) != said:  # it may say what to do, as where ZooKeeper has lost its data
                    said = str(error)
                    self._runtime.log.warning("broker registration failed; retrying", error=said)
                await asyncio.sleep(PAUSE_SECONDS)

    async def tell_versions(self) -> None:
        if self._membership.is_registering:
            return
        try:
            await self._membership.versions.tell()
        except CoordinationUnavailable as error:  # with the next checkpoint
            self._runtime.log.info("log directory versions not reported", error=str(error))

    async def find_address(self, broker_id: int) -> tuple[str, int] | None:
        """Where a broker listens for others: what it registered last, else what the metadata says."""
        try:
            member = (await self._coordination.members())[BrokerId(broker_id)]
            told = description.decode(member.broker_id, member.description)
        except (CoordinationUnavailable, KeyError, CorruptLog):
            return self._metadata.address_of(broker_id)
        return self._metadata.address_among(told.endpoints)

    # --- who is the active controller -----------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._stopping:
            try:
                await self._turn()
            except (CoordinationUnavailable, ControllerFenced, NotController):
                await asyncio.sleep(PAUSE_SECONDS)
            except (CorruptLog, StorageError) as error:
                self._runtime.give_up(error)
                return
            except DoesNotFollow as error:
                if await cut_damaged_end(self._runtime, self._logs, self._coordination, error):
                    return
                self._runtime.log.error("metadata fetch failed; retrying", error=str(error))
                await asyncio.sleep(PAUSE_SECONDS)
            except HeadraceError as error:
                self._runtime.log.error("metadata fetch failed; retrying", error=str(error))
                await asyncio.sleep(PAUSE_SECONDS)
            except Exception as error:
                self._runtime.log.error("metadata fetch failed", error=repr(error), exc_info=error)
                self._runtime.give_up(StorageError(f"the metadata cannot be followed: {error!r}"))
                return

    async def _turn(self) -> None:
        self._follower.moved.clear()
        try:
            latest = await self._coordination.latest_epoch()
            self._active_controller = await self._coordination.active_controller()
        except CoordinationUnavailable:
            if self._active_controller is None:
                raise
            # The metadata is frozen, and whoever held the controllership last still tells what is committed.
            latest = self._active_controller.epoch
        controller = self._active_controller
        if controller is None:
            await self._succeed(latest, NO_BROKER, "no controller is active")
        elif controller.holder == self._runtime.broker_id:
            # The node of an earlier process of this broker, or of a session that was lost.
            await self._succeed(latest, NO_BROKER, "this broker's last term is over")
        else:
            ended = await self._follower.follow(controller, self._coordination.session_timeout_ms / 1000)
            if ended is not Ended.MOVED:
                await self._succeed(controller.epoch, controller.holder, ended.value)

    async def _succeed(self, deposing: ControllerEpoch, holder: int, why: str) -> None:
        """Become controller, if nobody was faster and this broker can know everything that is committed."""
        if self._stopping or self._coordination.session is not SessionState.CONNECTED:
            await asyncio.sleep(PAUSE_SECONDS)
            return
        if not await is_all_there(self._runtime, self._metadata.store, self._coordination):
            await asyncio.sleep(1.0)
            return
        began = self._runtime.loop.time()
        await self._controller.enter(self._runtime.broker_id, deposing=deposing)
        self._confirmed_at = began
        self._active_controller = ActiveController(self._runtime.broker_id, self._controller.epoch)
        self._runtime.log.info(
            "became the active controller",
            epoch=self._controller.epoch,
            why=why,
            after_ms=int((self._runtime.loop.time() - began) * 1000),
        )
        await self._serve(holder)

    async def _serve(self, deposed: int) -> None:
        self._resigned.clear()
        if not self._controller.is_active:
            return
        self._duties = ControllerDuties(
            self._runtime,
            self._metadata,
            self._controller,
            lambda: self.broker_epoch,
            self._coordination,
            self._fencings,
            self._decisions,
        )
        self._duties.start(deposed)
        moved = self._follower.moved
        while not self._resigned.is_set():
            moved.clear()
            await self._resign_if_deposed()
            try:
                async with asyncio.timeout(self._confirm_seconds):
                    await moved.wait()
            except TimeoutError:
                pass
        await self._end_duties()
        await self._controller.settled()  # what it committed last is applied before anybody is followed
        self._runtime.log.info("resigned as controller", epoch=self._controller.epoch)

    async def _resign_if_deposed(self) -> None:
        """Whoever has nothing to commit would otherwise never hear that another has become controller."""
        controller = self._controller
        loop = self._runtime.loop
        asked_at = loop.time()
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                latest = await self._coordination.latest_epoch()
        except (CoordinationUnavailable, TimeoutError):
            asked_at = loop.time()
            if await self._most_agree():
                self._confirmed_at = asked_at
            return
        if controller.is_active and latest > controller.epoch:
            controller.resign(ControllerFenced(f"controller epoch {latest} has begun"))
        else:
            self._confirmed_at = asked_at

    @property
    def _confirm_seconds(self) -> float:
        return min(CONFIRM_SECONDS, self._coordination.session_timeout_ms / 1000 / CONFIRMATIONS_PER_SESSION)

    async def _most_agree(self) -> bool:
        """Cut off from the coordination service, only the others can tell that one of them has taken over.
        Until then clients that ask here would be sent to leaders that are none any more (fault 12).

        Whether most brokers, this one among them, could be asked, and none knew of a later term than this.
        """
        controller = self._controller
        others = [each for each in self._metadata.image.brokers if each != self._runtime.broker_id]
        fenced = {each for each in others if self._metadata.image.brokers[each].fenced}
        known = await asyncio.gather(*(self._follower.epoch_known_to(other) for other in others))
        agreeing = 1
        for other, epoch in zip(others, known, strict=True):
            if epoch is None:
                continue
            agreeing += other not in fenced
            if epoch > controller.epoch and not self._resigned.is_set():
                # Whoever knows of it can be followed: all that anybody serves is committed.
                self._active_controller = ActiveController(BrokerId(other), ControllerEpoch(epoch))
                controller.resign(ControllerFenced(f"broker {other} knows of controller epoch {epoch}"))
        return 2 * agreeing > len(others) - len(fenced) + 1 and not self._resigned.is_set()

    async def _end_duties(self) -> None:
        duties, self._duties = self._duties, None
        if duties is not None:
            await duties.stop()
