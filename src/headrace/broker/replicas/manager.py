"""Which partition follows whom: one fetcher for each leader broker, as partitions come and go.

Also what belongs to replicas on the leader's side: proposals of ISRs, throttles, the choice of directories.
"""

from __future__ import annotations

import asyncio

from headrace.broker.replicas.directory_choices import DirectoryChoices
from headrace.broker.replicas.fetcher import ReplicaFetcher
from headrace.broker.replicas.host import FollowingPartition, ReplicaHost
from headrace.broker.replicas.isr_changes import IsrChanges
from headrace.broker.replicas.throttle import ReplicationThrottles
from headrace.core.tasks import spawn

FetcherKey = tuple[int, int]
"""The leader, and which of the links to it: `num.replica.fetchers` share the partitions among them."""


class ReplicaManager:
    def __init__(self, host: ReplicaHost) -> None:
        self._host = host
        self.throttles = ReplicationThrottles(host.runtime.broker_id)
        self.isr_changes = IsrChanges(host)
        self.directories = DirectoryChoices(host)
        self._fetchers: dict[FetcherKey, ReplicaFetcher] = {}
        self._places: dict[FollowingPartition, FetcherKey] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._is_stopped = False

    def start(self) -> None:
        self.throttles.update(self._host.runtime.config)
        self.isr_changes.start()
        self.directories.start()

    async def stop(self) -> None:
        """No partition follows anybody from now on, and nothing that was asked for is applied."""
        self._is_stopped = True
        self._places.clear()
        for key in list(self._fetchers):
            self._end(key)
        await self.isr_changes.stop()
        await self.directories.stop()
        if self._ending:
            await asyncio.wait(list(self._ending))

    # --- what hosting calls, after each `assign` ---------------------------------------------------------

    def follow(self, partition: FollowingPartition) -> None:
        """The partition follows `partition.leader_id` in its leader epoch; it may have followed another."""
        if self._is_stopped:
            return
        key = self._key(partition)
        before = self._places.get(partition)
        if before is not None and before != key:
            self.unfollow(partition)
        self._places[partition] = key
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = ReplicaFetcher(self._host, key[0], self.throttles.follower)
            fetcher.follow(partition)
            fetcher.start()
        else:
            fetcher.follow(partition)

    def unfollow(self, partition: FollowingPartition) -> None:
        """It leads, or is gone. An answer that is on its way finds nobody."""
        key = self._places.pop(partition, None)
        if key is None:
            return
        fetcher = self._fetchers[key]
        fetcher.unfollow(partition)
        if fetcher.is_idle:
            # At the end of this turn: a change of the metadata that moves all partitions may bring others.
            self._host.runtime.loop.call_soon(self._end_if_idle, key)

    def on_brokers_changed(self) -> None:
        """Registrations changed: addresses, fences. Whoever could not be reached is tried at once."""
        for fetcher in list(self._fetchers.values()):
            fetcher.on_brokers_changed()
        self.isr_changes.on_brokers_changed()

    def on_config_changed(self) -> None:
        """The broker's configuration is another object."""
        self.throttles.update(self._host.runtime.config)

    @property
    def following(self) -> int:
        return len(self._places)

    def _key(self, partition: FollowingPartition) -> FetcherKey:
        links = self._host.runtime.config.num_replica_fetchers
        if links == 1:
            return partition.leader_id, 0
        spread = partition.topic_id.bytes[-1] + partition.topic_partition.partition
        return partition.leader_id, spread % links

    def _end_if_idle(self, key: FetcherKey) -> None:
        fetcher = self._fetchers.get(key)
        if fetcher is not None and fetcher.is_idle:
            self._end(key)

    def _end(self, key: FetcherKey) -> None:
        fetcher = self._fetchers.pop(key)
        task = spawn(f"the end of the fetcher of broker {key[0]}", fetcher.stop(), self._host.runtime.loop)
        self._ending[task] = None
        task.add_done_callback(lambda done: self._ending.pop(done, None))
