"""Offsets of the source's groups, committed here as well: for groups that have no members here.

Offsets are the same on both sides, so nothing is translated. One that is ahead of the copy is committed as
the end of the copy: to begin there repeats nothing and misses nothing, and an offset beyond the end would
have a consumer reset to somewhere else. Each leader does it for its own partitions, of which it knows the
end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from inspect import isawaitable
from typing import Final

from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC
from headrace.broker.linking.host import LinkHost
from headrace.broker.linking.source import Source
from headrace.client.cluster import Cluster
from headrace.client.group_offsets import Committed, committed_offsets
from headrace.client.groups import list_groups
from headrace.controller.image import MetadataImage
from headrace.controller.link_image import Link, LinkState
from headrace.coordinators.partitioning import partition_for
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.core.tasks import spawn
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.replication.linking import LinkedPartition

INTERVAL_SECONDS: Final = 2.0
REQUEST_SECONDS: Final = 10.0
COMMIT_VERSION: Final = 9
"""The last that names topics."""

Done = dict[tuple[str, TopicPartition], int]


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
        self._done: Done = {}
        """What this broker has committed: a group that has read on here is set back only if it moves over
        there."""
        self._peers: dict[int, PeerLink] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """There is a link with groups: look until there is none."""
        if self._task is None or self._task.done():
            self._task = spawn("groups of links", self._run(), self._host.runtime.loop)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        for peer in self._peers.values():
            peer.close()

    async def _run(self) -> None:
        while topics := self._topics():
            copied: dict[str, list[LinkedPartition]] = {}
            for linked in self._copied():
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
        wanted: dict[TopicPartition, tuple[int, str]] = {}
        for name, committed in offsets.items():
            linked = names.get(name)
            if linked is None or not linked.is_current:
                continue
            offset = min(committed.offset, linked.partition.high_watermark)
            if self._done.get((group, linked.topic_partition)) != offset:
                wanted[linked.topic_partition] = (offset, committed.metadata)
        if not wanted:
            return
        image = self._host.metadata.image
        answer = await self._ask(group, _request(group, wanted, image))
        for topic in answer.topics:
            known = image.topic_by_id(topic.topic_id)
            for each in topic.partitions:
                name = TopicPartition(topic.name if known is None else known.name, each.partition_index)
                if not each.error_code and name in wanted:
                    self._done[group, name] = wanted[name][0]

    async def _ask(self, group: str, request: OffsetCommitRequest) -> OffsetCommitResponse:
        """The coordinator refuses it while the group has members: they would not notice."""
        metadata, runtime = self._host.metadata, self._host.runtime
        if metadata.image.topic(GROUPS_TOPIC) is None:
            await self._host.ensure_topic(GROUPS_TOPIC)
        topic = metadata.image.topic(GROUPS_TOPIC)
        if topic is None:
            return OffsetCommitResponse()
        leader = topic.leader(partition_for(group, len(topic)))
        if leader == runtime.broker_id:
            served = self._host.serve_here(request)
            answer = await served if isawaitable(served) else served
            assert isinstance(answer, OffsetCommitResponse)
            return answer
        peer = self._peers.setdefault(leader, PeerLink(runtime, metadata, leader))
        link = await peer.open()
        return await ask(link, request, OffsetCommitResponse, version=COMMIT_VERSION, timeout=REQUEST_SECONDS)


def _request(
    group: str, wanted: Mapping[TopicPartition, tuple[int, str]], image: MetadataImage
) -> OffsetCommitRequest:
    """Topics by name for a peer, and by id for this broker itself, which serves the newest version."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (name, index), (offset, text) in wanted.items():
        topics.setdefault(name, []).append(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=text
            )
        )
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(name=name, topic_id=known.topic_id, partitions=each)
            for name, each in topics.items()
            if (known := image.topic(name)) is not None
        ],
    )
