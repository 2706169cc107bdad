"""Which partitions this broker copies from other clusters: all that it leads, whose link is active.

The metadata says it all (controller/link_image.py). This follows it: each partition of a linked topic is
sealed against producers, copied while its link is active, and opened when it is promoted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from headrace.broker.cluster.lifecycle import MissingPartitions, StartHosting
from headrace.broker.linking.groups import GroupCopies
from headrace.broker.linking.host import LinkHost
from headrace.broker.linking.promotion import Promotion
from headrace.broker.linking.reports import Reports
from headrace.broker.linking.source import Source, SourceKey
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ResourceType
from headrace.controller.link_image import STOPPED, Link, LinkState
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.replication.linking import LinkedPartition
from headrace.replication.partition import Partition

RETRY_SECONDS: Final = 0.5
STATUS: Final = "status."
SOURCE_ERROR: Final = "source.error"

Place = tuple[UUID, int]


class Linking:
    def __init__(self, host: LinkHost) -> None:
        self._host = host
        self._reports = Reports(host.channel)
        self._groups = GroupCopies(host, self.source_of, self.all_copied)
        self._sources: dict[SourceKey, Source] = {}
        self._linked: dict[Place, tuple[LinkedPartition, Source]] = {}
        self._promotions: dict[Place, tuple[Promotion, asyncio.Task[None]]] = {}
        self._opened: dict[Place, int] = {}
        """In which leader epoch the producers of the source were forgotten."""
        self._stopped_reports: dict[LinkedPartition, asyncio.Task[None]] = {}
        self._growing: dict[str, asyncio.Task[None]] = {}
        self._ending: dict[asyncio.Task[None], None] = {}
        self._is_stopped = False

    def after(self, host: StartHosting) -> StartHosting:
        """Start once partitions are hosted: it then hears of a change later than they do."""

        def start(missing: MissingPartitions) -> None:
            host(missing)
            self.start()

        return start

    def start(self) -> None:
        self._host.metadata.store.subscribe(self._on_delta)
        for topic in list(self._host.metadata.image.links):
            self._consider_topic(topic)

    async def stop(self) -> None:
        """Nothing is copied any more, and nothing that was asked for is applied."""
        self._is_stopped = True
        await self._groups.stop()
        for place in list(self._linked):
            self._uncopy(place)
        tasks = [*(task for _, task in self._promotions.values()), *self._growing.values()]
        tasks += self._stopped_reports.values()
        for task in tasks:
            task.cancel()
        for source in self._sources.values():
            self._end(source)
        self._sources.clear()
        if tasks or self._ending:
            await asyncio.wait([*tasks, *self._ending])

    # --- what the metadata says -------------------------------------------------------------------------

    def _on_delta(self, delta: MetadataDelta) -> None:
        for resource in delta.configs:
            if resource.type == ResourceType.LINK:
                self._consider_topic(resource.name)
        if delta.removed_topics and (self._linked or self._promotions):
            for removed in delta.removed_topics:
                for place in [
                    each for each in (*self._linked, *self._promotions) if each[0] == removed.topic_id
                ]:
                    self._uncopy(place)
                    self._end_promotion(place)

    def _consider_topic(self, topic: str) -> None:
        for partition in self._host.partitions.of_topic(topic):
            self.consider(partition)

    def consider(self, partition: Partition) -> None:
        """Its row, or its link, has changed. Called before anybody can produce to it."""
        links = self._host.metadata.image.links
        if not links or self._is_stopped:
            return
        name, index = partition.topic_partition
        link = links.get(name)
        if link is None:
            return
        place = (partition.topic_id, index)
        self._seal(partition, link, place)
        self._copy(partition, link, place)
        self._promote(partition, link, place)
        if link.groups and link.state == LinkState.ACTIVE:
            self._groups.start()

    def _seal(self, partition: Partition, link: Link, place: Place) -> None:
        if link.is_sealed(place[1]):
            if not partition.log.is_sealed:
                partition.log.seal(
                    f"{partition.topic_partition.topic} is a copy of topic {link.source_topic} at"
                    f" {link.bootstrap}: produce there, or promote the copy with `headrace link promote`"
                )
            return
        if partition.log.is_sealed:
            partition.log.seal(None)
        opened = link.opened.get(place[1])  # none of a partition that was added after the promotion
        if opened is not None and partition.is_leader and self._opened.get(place) != partition.leader_epoch:
            self._opened[place] = partition.leader_epoch
            partition.log.producers.forget_before(opened)

    def _copy(self, partition: Partition, link: Link, place: Place) -> None:
        known = self._linked.get(place)
        key = SourceKey(link.bootstrap, link.client_config)
        if not partition.is_leader or not link.copies(place[1]):
            self._uncopy(place)
            return
        if known is not None:
            if known[0].partition is partition and known[0].is_current and known[1].key == key:
                return
            self._uncopy(place)
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = Source(self._host, key, self._on_source_topics, self._on_stopped)
            source.start()
        linked = LinkedPartition(partition, link.source_topic, link.source_topic_id)
        self._linked[place] = (linked, source)
        source.add(linked)

    def _uncopy(self, place: Place) -> None:
        known = self._linked.pop(place, None)
        if known is None:
            return
        linked, source = known
        source.remove(linked)
        if source.is_idle and not self._is_stopped:
            # At the end of this turn: a change of the metadata that moves all partitions may bring others.
            self._host.runtime.loop.call_soon(self._end_if_idle, source)

    def _end_if_idle(self, source: Source) -> None:
        if source.is_idle and self._sources.get(source.key) is source:
            del self._sources[source.key]
            self._end(source)

    def _end(self, source: Source) -> None:
        task = spawn(f"the end of links to {source.key.bootstrap}", source.stop(), self._host.runtime.loop)
        self._ending[task] = None
        task.add_done_callback(lambda done: self._ending.pop(done, None))

    def _promote(self, partition: Partition, link: Link, place: Place) -> None:
        known = self._promotions.get(place)
        if not partition.is_leader or not link.aborts(place[1]):
            self._end_promotion(place)
            return
        if known is not None:
            if known[0].leader_epoch == partition.leader_epoch:
                return
            self._end_promotion(place)
        promotion = Promotion(self._host, self._reports, partition)
        task = spawn(f"promotion of {partition.topic_partition}", promotion.run(), self._host.runtime.loop)
        self._promotions[place] = (promotion, task)

    def _end_promotion(self, place: Place) -> None:
        known = self._promotions.pop(place, None)
        if known is not None:
            known[1].cancel()

    # --- what the source says ---------------------------------------------------------------------------

    def _on_source_topics(self, source: Source, sizes: Mapping[str, int]) -> None:
        """The leader of partition 0 adds the partitions that were added over there."""
        image = self._host.metadata.image
        for linked, its_source in list(self._linked.values()):
            name, index = linked.topic_partition
            topic = image.topic(name)
            if index or its_source is not source or topic is None or name in self._growing:
                continue
            partitions = sizes.get(linked.source_topic, 0)
            if len(topic) < partitions:
                task = spawn(f"growth of {name}", self._grow(name, partitions), self._host.runtime.loop)
                self._growing[name] = task
                task.add_done_callback(partial(self._grown, name))

    def _grown(self, topic: str, _task: asyncio.Task[None]) -> None:
        self._growing.pop(topic, None)

    async def _grow(self, topic: str, partitions: int) -> None:
        try:
            await self._reports.grow(topic, partitions)
        except HeadraceError as error:
            self._host.runtime.log.warning(
                "partitions of the source not added", topic=topic, partitions=partitions, error=str(error)
            )

    def _on_stopped(self, linked: LinkedPartition) -> None:
        if linked in self._stopped_reports:
            return
        self._host.runtime.log.error(
            "link stopped", partition=str(linked.topic_partition), reason=linked.stopped
        )
        task = spawn("a report of a stopped link", self._report(linked), self._host.runtime.loop)
        self._stopped_reports[linked] = task
        task.add_done_callback(lambda _: self._stopped_reports.pop(linked, None))

    async def _report(self, linked: LinkedPartition) -> None:
        """Until the metadata has it, or this broker leads no more: then the next leader finds it out
        itself."""
        name, index = linked.topic_partition
        epoch = linked.partition.leader_epoch
        while linked.is_current:
            try:
                await self._reports.tell(name, f"{STOPPED}{index}", f"{epoch}:{linked.stopped}")
                return
            except HeadraceError as error:
                self._host.runtime.log.info("stopped link not reported", topic=name, error=str(error))
            await asyncio.sleep(RETRY_SECONDS)

    # --- what others ask --------------------------------------------------------------------------------

    def source_of(self, link: Link) -> Source | None:
        return self._sources.get(SourceKey(link.bootstrap, link.client_config))

    def all_copied(self) -> list[LinkedPartition]:
        return [linked for linked, _ in self._linked.values()]

    def status(self, topic: str) -> dict[str, str]:
        """How far this broker is with the partitions that it leads, beside what the metadata says."""
        link = self._host.metadata.image.links.get(topic)
        told: dict[str, str] = {}
        if link is None:
            return told
        source = self.source_of(link)
        error = None if source is None else source.error or source.topic_errors.get(link.source_topic)
        if error is not None:
            told[SOURCE_ERROR] = error
        for partition in self._host.partitions.of_topic(topic):
            if partition.is_leader:
                index = partition.topic_partition.partition
                told[f"{STATUS}{index}"] = json.dumps(self._status_of(partition))
        return told

    def _status_of(self, partition: Partition) -> Mapping[str, Any]:
        place = (partition.topic_id, partition.topic_partition.partition)
        status: dict[str, Any] = {"end": partition.high_watermark}
        known, promotion = self._linked.get(place), self._promotions.get(place)
        if known is not None:
            linked = known[0]
            status.update(source_end=linked.source_end, lag=linked.lag, lost=linked.lost_records)
            if linked.error_code:
                status["error_code"] = linked.error_code
        if promotion is not None and promotion[0].error is not None:
            status["promotion"] = promotion[0].error
        return status
