"""A member of a classic group: joins, is given partitions, says that it lives, commits, and leaves.

It assigns by range, as every client can, so that it gets along with members of other clients. It gives up all
partitions at each rebalance and starts again from what is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from headrace.client.classic_member import ClassicMember
from headrace.client.cluster import Cluster
from headrace.client.groups import CONSUMER_PROTOCOL, classic_assignment
from headrace.client.offsets import partitions_of
from headrace.core.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from headrace.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.messages.offset_commit_response import OffsetCommitResponse
from headrace.protocol.primitives import Reader, Writer

RANGE: Final = "range"
_COMMIT_AT_MOST: Final = 9  # from 10 on a commit names topics by id
_SUBSCRIPTION_VERSION: Final = 1
_ASSIGNMENT_VERSION: Final = 1


class GroupMember(ClassicMember):
    protocol_type = CONSUMER_PROTOCOL
    protocol_name = RANGE

    def __init__(
        self,
        cluster: Cluster,
        group_id: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int = 45_000,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        super().__init__(
            cluster,
            group_id,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
        )
        self.topics = list(topics)

    async def join(self) -> list[TopicPartition]:
        """What this member is to read. Comes back when all members have joined, which can take a while."""
        return classic_assignment(await self.join_group())

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether it counts. If not, the partitions are another member's by now."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (name, index), offset in offsets.items():
            topics.setdefault(name, []).append(
                OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=items) for name, items in topics.items()],
        )

        async def attempt() -> bool:
            reply = await self._ask(request, OffsetCommitResponse, at_most=_COMMIT_AT_MOST)
            codes = [entry.error_code for topic in reply.topics for entry in topic.partitions]
            return all(not self._checked(code) for code in codes)

        return not offsets or await self.cluster.retried(attempt)

    def metadata(self) -> bytes:
        return _with_version(_SUBSCRIPTION_VERSION, ConsumerProtocolSubscription(topics=self.topics))

    async def assign(self, told: Mapping[str, bytes]) -> Mapping[str, bytes]:
        wishes = {member_id: _subscribed(metadata) for member_id, metadata in told.items()}
        partitions = {
            topic: await partitions_of(self.cluster, topic)
            for topic in sorted({topic for topics in wishes.values() for topic in topics})
        }
        return {
            member_id: encode_assignment(given)
            for member_id, given in assign_ranges(wishes, partitions).items()
        }


def assign_ranges(
    wishes: Mapping[str, Iterable[str]], partitions: Mapping[str, Sequence[TopicPartition]]
) -> dict[str, list[TopicPartition]]:
    """Of each topic, each member that wants it gets a range; the first ones get one more where it does not
    come out even. Every client's assignor of that name does the same."""
    given: dict[str, list[TopicPartition]] = {member_id: [] for member_id in wishes}
    for topic, all_of_it in partitions.items():
        readers = sorted(member_id for member_id, topics in wishes.items() if topic in topics)
        at = 0
        for index, member_id in enumerate(readers):
            share = len(all_of_it) // len(readers) + (index < len(all_of_it) % len(readers))
            given[member_id] += all_of_it[at : at + share]
            at += share
    return given


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return _with_version(
        _ASSIGNMENT_VERSION,
        ConsumerProtocolAssignment(
            assigned_partitions=[Assigned(topic=name, partitions=indexes) for name, indexes in topics.items()]
        ),
    )


def _subscribed(metadata: bytes) -> list[str]:
    reader = Reader(metadata)
    version = min(reader.int16(), ConsumerProtocolSubscription.MAX_VERSION)
    return ConsumerProtocolSubscription.decode(reader, version).topics


def _with_version(version: int, message: Message) -> bytes:
    writer = Writer()
    writer.int16(version)
    return writer.getvalue() + message.to_bytes(version)
