"""What links ask the coordinators of groups here: the one on this broker itself, others as peers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from inspect import isawaitable
from typing import Final, TypeVar

from headrace.broker.cluster.peer_link import PeerLink
from headrace.broker.cluster.peer_requests import ask
from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC
from headrace.broker.linking.carried_offsets import CommittedHere
from headrace.broker.linking.host import LinkHost
from headrace.client.grouping import by_topic
from headrace.coordinators.partitioning import partition_for
from headrace.core.errors import CoordinatorNotAvailable
from headrace.core.ids import TopicPartition
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse

REQUEST_SECONDS: Final = 10.0
NAMED_VERSION: Final = 9
"""The last of OffsetCommit and of OffsetFetch that names topics."""

A = TypeVar("A", bound=Message)


class GroupCoordinators:
    def __init__(self, host: LinkHost) -> None:
        self._host = host
        self._peers: dict[int, PeerLink] = {}

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()

    async def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedHere]:
        """What the group has committed here. Raises if the coordinator does not say: it may be loading."""
        image = self._host.metadata.image
        topics = [
            OffsetFetchRequestTopics(name=name, topic_id=known.topic_id, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
            if (known := image.topic(name)) is not None
        ]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
        answer = await self._ask(group, request, OffsetFetchResponse)
        found: dict[TopicPartition, CommittedHere] = {}
        for each in answer.groups:
            if each.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                raise CoordinatorNotAvailable(f"the coordinator of {group} answered {each.error_code}")
            for topic in each.topics:
                known = image.topic_by_id(topic.topic_id)
                for entry in topic.partitions:
                    if entry.committed_offset >= 0:
                        name = TopicPartition(
                            topic.name if known is None else known.name, entry.partition_index
                        )
                        found[name] = CommittedHere(entry.committed_offset, entry.committed_leader_epoch)
        return found

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]
    ) -> set[TopicPartition]:
        """Those that were taken. All are refused while the group has members: they would not notice."""
        image = self._host.metadata.image
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (name, index), (offset, text) in offsets.items():
            topics.setdefault(name, []).append(
                OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=text
                )
            )
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(name=name, topic_id=known.topic_id, partitions=each)
                for name, each in topics.items()
                if (known := image.topic(name)) is not None
            ],
        )
        answer = await self._ask(group, request, OffsetCommitResponse)
        taken: set[TopicPartition] = set()
        for topic in answer.topics:
            known = image.topic_by_id(topic.topic_id)
            taken.update(
                TopicPartition(topic.name if known is None else known.name, each.partition_index)
                for each in topic.partitions
                if not each.error_code
            )
        return taken

    async def _ask(self, group: str, request: Message, response: type[A]) -> A:
        """Topics have names for a peer, and ids for this broker itself: it serves the newest version."""
        metadata, runtime = self._host.metadata, self._host.runtime
        if metadata.image.topic(GROUPS_TOPIC) is None:
            await self._host.ensure_topic(GROUPS_TOPIC)
        topic = metadata.image.topic(GROUPS_TOPIC)
        if topic is None:
            raise CoordinatorNotAvailable(f"{GROUPS_TOPIC} is not there yet")
        leader = topic.leader(partition_for(group, len(topic)))
        if leader == runtime.broker_id:
            served = self._host.serve_here(request)
            answer = await served if isawaitable(served) else served
            assert isinstance(answer, response)
            return answer
        peer = self._peers.setdefault(leader, PeerLink(runtime, metadata, leader))
        link = await peer.open()
        return await ask(link, request, response, version=NAMED_VERSION, timeout=REQUEST_SECONDS)
