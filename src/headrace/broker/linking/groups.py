"""Offsets of the source's groups, committed here as well: for groups that have no members here.

Offsets are the same on both sides, so nothing is translated. One that is ahead of the copy is committed as
the end of the copy: to begin there repeats nothing and misses nothing, and an offset beyond the end would
have a consumer reset to somewhere else. Each leader does it for its own partitions, of which it knows the
end. What a group has read on here is not taken back (`carried_offsets.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from headrace.broker.linking.carried_offsets import CarriedOffsets, Place
from headrace.broker.linking.group_coordinators import GroupCoordinators
from headrace.broker.linking.host import LinkHost
from headrace.broker.linking.source import Source
from headrace.client.cluster import Cluster
from headrace.client.group_offsets import Committed, committed_offsets
from headrace.client.groups import list_groups
from headrace.controller.link_image import Link, LinkState
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.replication.linking import LinkedPartition

INTERVAL_SECONDS: Final = 2.0


class GroupCopies:
    def __init__(
        self,
        host: LinkHost,
        source_of: Callable[[Link], Source | None],
        copied: Callable[[], list[LinkedPartition]],
    ) -> None:
        self._host = host
        self._source_of = source_of
        self._copied = copied
        self._carried = CarriedOffsets()
        self._coordinators = GroupCoordinators(host)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """There is a link with groups: look until there is none."""
        if self._task is None or self._task.done():
            self._task = spawn("groups of links", self._run(), self._host.runtime.loop)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        self._coordinators.close()

    async def _run(self) -> None:
        while topics := self._topics():
            copied: dict[str, list[LinkedPartition]] = {}
            all_copied = self._copied()
            self._carried.keep_only(all_copied)
            for linked in all_copied:
                copied.setdefault(linked.topic_partition.topic, []).append(linked)
            for topic, link in topics.items():
                try:
                    await self._copy(link, copied.get(topic, []))
                except HeadraceError as error:
                    self._host.runtime.log.info("groups of a link not copied", topic=topic, error=str(error))
            await asyncio.sleep(INTERVAL_SECONDS)

    def _topics(self) -> dict[str, Link]:
        links = self._host.metadata.image.links
        return {
            topic: link for topic, link in links.items() if link.groups and link.state == LinkState.ACTIVE
        }

    async def _copy(self, link: Link, copied: list[LinkedPartition]) -> None:
        source = self._source_of(link)
        if source is None or not copied:
            return
        cluster = await source.cluster()
        groups = await self._groups(cluster, link.groups)
        if not groups:
            return
        names = {TopicPartition(link.source_topic, each.topic_partition.partition): each for each in copied}
        for group, offsets in (await committed_offsets(cluster, groups, names)).items():
            await self._commit(group, names, offsets)

    async def _groups(self, cluster: Cluster, patterns: list[str]) -> list[str]:
        listed = await list_groups(cluster)
        return [
            group.group_id
            for group in listed
            if any(fnmatchcase(group.group_id, pattern) for pattern in patterns)
        ]

    async def _commit(
        self,
        group: str,
        names: Mapping[TopicPartition, LinkedPartition],
        offsets: Mapping[TopicPartition, Committed],
    ) -> None:
        places = {
            linked: Place(
                committed.offset, min(committed.offset, linked.partition.high_watermark), committed.metadata
            )
            for name, committed in offsets.items()
            if (linked := names.get(name)) is not None and linked.is_current
        }
        moved = self._carried.moved(group, places)
        new = self._carried.are_new(group, moved)
        if new:
            found = await self._coordinators.committed(group, [each.topic_partition for each in new])
            for linked in new:
                here = found.get(linked.topic_partition)
                if self._carried.is_left_alone(group, linked, moved[linked], here):
                    del moved[linked]
        if not moved:
            return
        wanted = {linked.topic_partition: (place.here, place.metadata) for linked, place in moved.items()}
        taken = await self._coordinators.commit(group, wanted)
        for linked, place in moved.items():
            if linked.topic_partition in taken:
                self._carried.on_committed(group, linked, place)
