"""This process as a member of the cluster: it registers, and registers again when its session was lost."""

from __future__ import annotations

import asyncio
from typing import Final, Literal
from uuid import UUID

from headrace.broker.cluster import description
from headrace.broker.cluster.directory_versions import DirectoryVersions
from headrace.broker.cluster.lost_replicas import find_lost
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.controller.brokers import BrokerDescription
from headrace.controller.image import Endpoint
from headrace.core.errors import ConfigError
from headrace.core.ids import BrokerEpoch
from headrace.core.ports_coordination import Coordination
from headrace.log.manager import LogManager

Stopped = Literal["clean", "same-boot", "unknown"]

INCARNATIONS_KEPT: Final = 32
"""Incarnations that no controller has heard of are rare: one is enough for most, and a loop of starts that
fail is not to fill the node."""


MOST_LOST_CHARACTERS: Final = 200_000
"""Of the names of lost replicas: a node of ZooKeeper holds a megabyte. With more of them nothing is vouched
for."""

_STRANGER_SESSIONS: Final = 2
"""How many session time-outs to wait for a node that nobody keeps alive to go."""
_LOOK_SECONDS: Final = 0.2


class Membership:
    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataCache,
        logs: LogManager,
        endpoints: tuple[Endpoint, ...],
        coordination: Coordination,
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._logs = logs
        self._endpoints = endpoints
        self._coordination = coordination
        self._incarnation = UUID(bytes=runtime.random.randbytes(16), version=4)
        self.broker_epoch = BrokerEpoch(-1)
        """The epoch of the last registration of this process; -1 before the first."""
        self.is_registering = True
        """A later epoch than that in the metadata may be this process's own."""
        self.versions = DirectoryVersions(runtime, logs, coordination)
        self._is_stale = False
        """The directories are older than what the cluster has heard of them."""
        self._whole_since: tuple[UUID, ...] = ()
        """This process and those before it, since which its directories have lost nothing."""

    async def register(self) -> None:
        """Each time is a new incarnation with a new epoch, also if the process is the same."""
        self.is_registering = True  # until it succeeds: an attempt that failed may have had its effect
        if not self._whole_since:
            self._is_stale = await self.versions.are_stale()
        told = self.describe()
        await self._wait_for_stranger(told)
        kept = () if told.stopped == "unknown" else told.earlier_incarnations
        earlier = [each for each in kept if each != self._incarnation]
        self._whole_since = (*earlier[-INCARNATIONS_KEPT:], self._incarnation)
        # First the disk, then the node: were it the other way round, a process that is killed in between
        # would be known to the controller and not to its own directories, and the next one be distrusted.
        online = list(self._logs.online())
        paths = [directory.path for directory in online]
        await self._runtime.loop.run_in_executor(
            None,
            description.remember,
            self._runtime.disk,
            paths,
            self._runtime.environment.boot_id,
            self._whole_since,
        )
        for directory in online:
            if directory.may_have_lost:  # meanwhile: what was just noted is not true of it
                description.forget(self._runtime.disk, directory.path)
        await self.versions.renew()
        self.broker_epoch = await self._coordination.register(
            self._runtime.broker_id, description.encode(told)
        )
        self.is_registering = False

    async def _wait_for_stranger(self, told: BrokerDescription) -> None:
        """A process with other disks that has this broker.id, and lives: to take its place would give up all
        that its disks are trusted with. A node that only outlived its process goes with its session.

        Before anything is written: an ensemble that cannot be asked costs no syncs of disks.
        """
        deadline = (
            self._runtime.loop.time() + _STRANGER_SESSIONS * self._coordination.session_timeout_ms / 1000
        )
        while True:
            member = (await self._coordination.members()).get(self._runtime.broker_id)
            if member is None or member.epoch == self.broker_epoch:
                return
            other = description.decode(member.broker_id, member.description)
            if not set(other.directories).isdisjoint(told.directories):
                return  # of this broker: an earlier process, or this one
            if self._runtime.loop.time() >= deadline:
                raise ConfigError(
                    f"a process with other log directories runs as broker {self._runtime.broker_id}:"
                    " each needs its own broker.id"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    def describe(self) -> BrokerDescription:
        previous_epoch, earlier, stopped = self._previous()
        hosts_nothing = not self._whole_since and self._runtime.environment.wholeness.folders
        lost = find_lost(
            self._metadata.image, self._runtime.broker_id, self._logs, hosts_nothing=hosts_nothing
        )
        # Without metadata only the claims say which replicas there should be. Those of a clean stop name all;
        # a process that was killed may have made logs since it wrote them.
        has_all_claims = self._logs.have_claims and stopped == "clean"
        is_ignorant = hosts_nothing and not self._metadata.image.brokers and not has_all_claims
        if is_ignorant or sum(len(topic) for topic, _ in lost) > MOST_LOST_CHARACTERS:
            previous_epoch, earlier, stopped, lost = -1, (), "unknown", frozenset()
        return BrokerDescription(
            broker_id=self._runtime.broker_id,
            incarnation_id=self._incarnation,
            endpoints=self._endpoints,
            rack=self._runtime.config.broker_rack,
            directories=tuple(directory.uuid for directory in self._logs.online()),
            features=self._runtime.supported_features,
            previous_epoch=previous_epoch,
            stopped=stopped,
            earlier_incarnations=earlier,
            lost=lost,
        )

    def _previous(self) -> tuple[int, tuple[UUID, ...], Stopped]:
        """The broker epoch at a clean stop, the incarnations since which nothing was lost, and how the last
        of them ended.

        All of them, because a controller may never have heard of the last ones: a broker that was started
        three times while no controller was active has lost no more than one that was started once.
        """
        if self._whole_since:
            return -1, self._whole_since, "same-boot"  # this very process: nothing was lost with the session
        if self._is_stale:
            return -1, (), "unknown"
        remembered = description.recall(self._runtime.disk, self._runtime.config.data_directories)
        incarnations = () if remembered is None else remembered.incarnations
        at_stop = self._logs.broker_epoch_at_stop
        if at_stop >= 0:
            return at_stop, incarnations, "clean"
        if remembered is None:
            return -1, (), "unknown"
        same = description.is_same_boot(remembered, self._runtime.environment.boot_id)
        return -1, incarnations, "same-boot" if same else "unknown"
