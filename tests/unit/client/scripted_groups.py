"""A scripted broker that coordinates groups with members and offsets, and knows where logs end.

One socket plays brokers 0 and 1. Keys whose name ends with an odd digit belong to broker 1, others to 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages import consumer_group_describe_response as server_side
from headrace.protocol.messages import describe_groups_response as client_side
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.list_groups_response import ListedGroup, ListGroupsResponse
from headrace.protocol.messages.list_offsets_request import ListOffsetsRequest
from headrace.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from headrace.protocol.messages.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.protocol.messages.offset_delete_request import OffsetDeleteRequest
from headrace.protocol.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest
from headrace.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from headrace.protocol.writer import Writer
from tests.unit.client.scripted_broker import ScriptedBroker

Partition = tuple[str, int]


@dataclass
class ScriptedGroup:
    """`members` maps a member's id to what it was given."""

    kind: str = "classic"
    state: str = "Empty"
    protocol: str = "consumer"
    members: dict[str, list[Partition]] = field(default_factory=dict)
    targets: dict[str, list[Partition]] = field(default_factory=dict)
    offsets: dict[Partition, int] = field(default_factory=dict)
    pending: set[Partition] = field(default_factory=set)


@dataclass
class ScriptedLog:
    first: int = 0
    stable: int = 0
    high_watermark: int = 0
    end: int = 0
    by_time: int = -1


def by_topic(partitions: list[Partition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def encoded_assignment(partitions: list[Partition]) -> bytes:
    writer = Writer()
    writer.int16(3)
    topics = by_topic(partitions)
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[Assigned(topic=name, partitions=indexes) for name, indexes in topics.items()]
    )
    return writer.getvalue() + assignment.to_bytes(3)


DEAD: Final = 2


class ScriptedGroups(ScriptedBroker):
    """`refuse` are codes that the next questions to a coordinator get, one each, before anything is done."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers.update(
            {
                MetadataRequest: self._three_names,
                DescribeClusterRequest: self._two_brokers,
                FindCoordinatorRequest: self._find,
                ListGroupsRequest: self._list_groups,
                DescribeGroupsRequest: self._describe_groups,
                ConsumerGroupDescribeRequest: self._describe_consumer_groups,
                DeleteGroupsRequest: self._delete_groups,
                OffsetFetchRequest: self._offset_fetch,
                OffsetCommitRequest: self._offset_commit,
                OffsetDeleteRequest: self._offset_delete,
                ListOffsetsRequest: self._list_offsets,
            }
        )
        self.groups: dict[str, ScriptedGroup] = {}
        self.logs: dict[Partition, ScriptedLog] = {}
        self.refuse: list[int] = []
        self.lists = 0

    def _three_names(self, request: MetadataRequest, version: int) -> MetadataResponse:
        """The third has died a moment ago. Whoever asks it anything fails."""
        reply = self._metadata(request, version)
        reply.brokers = [
            MetadataResponseBroker(node_id=node, host="127.0.0.1", port=self.port if node < DEAD else 1)
            for node in (0, 1, DEAD)
        ]
        return reply

    def _two_brokers(self, _request: Any, _version: int) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            brokers=[
                DescribeClusterBroker(broker_id=node, host="127.0.0.1", port=self.port) for node in (0, 1)
            ]
        )

    def refusal(self) -> int:
        return self.refuse.pop(0) if self.refuse else 0

    @staticmethod
    def home(key: str) -> int:
        return 1 if key[-1:] in "13579" else 0

    def _find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        code = self.refusal()
        if version < 4:
            return FindCoordinatorResponse(node_id=self.home(request.key), error_code=code)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=self.home(key), error_code=code)
                for key in request.coordinator_keys
            ]
        )

    # --- groups ------------------------------------------------------------------------------------------

    def _list_groups(self, _request: Any, _version: int) -> ListGroupsResponse:
        # Brokers share this socket: their answers come in turn, in the order of their ids.
        broker, self.lists = self.lists % 2, self.lists + 1
        return ListGroupsResponse(
            groups=[
                ListedGroup(
                    group_id=name,
                    protocol_type=group.protocol,
                    group_state=group.state,
                    group_type=group.kind.capitalize(),
                )
                for name, group in self.groups.items()
                if self.home(name) == broker
            ]
        )

    def _describe_groups(
        self, request: DescribeGroupsRequest, version: int
    ) -> client_side.DescribeGroupsResponse:
        return client_side.DescribeGroupsResponse(
            groups=[self._classic(name, version) for name in request.groups]
        )

    def _classic(self, name: str, version: int) -> client_side.DescribedGroup:
        group = self.groups.get(name)
        if group is None or group.kind != "classic":
            code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0
            return client_side.DescribedGroup(group_id=name, group_state="Dead", error_code=code)
        return client_side.DescribedGroup(
            group_id=name,
            group_state=group.state,
            protocol_type=group.protocol,
            protocol_data="range" if group.members else "",
            members=[
                client_side.DescribedGroupMember(
                    member_id=member,
                    client_id=f"client-{member}",
                    client_host="/10.0.0.9",
                    member_assignment=encoded_assignment(partitions)
                    if group.protocol == "consumer"
                    else b"\xff",
                )
                for member, partitions in group.members.items()
            ],
        )

    def _describe_consumer_groups(
        self, request: ConsumerGroupDescribeRequest, _version: int
    ) -> server_side.ConsumerGroupDescribeResponse:
        return server_side.ConsumerGroupDescribeResponse(
            groups=[self._server_side(name) for name in request.group_ids]
        )

    def _server_side(self, name: str) -> server_side.DescribedGroup:
        group = self.groups.get(name)
        if group is None or group.kind != "consumer":
            return server_side.DescribedGroup(group_id=name, error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        return server_side.DescribedGroup(
            group_id=name,
            group_state=group.state,
            group_epoch=5,
            assignment_epoch=4,
            assignor_name="uniform",
            members=[
                server_side.Member(
                    member_id=member,
                    instance_id=f"instance-{member}",
                    member_epoch=4,
                    client_id=f"client-{member}",
                    client_host="/10.0.0.9",
                    subscribed_topic_names=["t"],
                    assignment=_server_side_assignment(partitions),
                    target_assignment=_server_side_assignment(group.targets.get(member, partitions)),
                )
                for member, partitions in group.members.items()
            ],
        )

    def _delete_groups(self, request: DeleteGroupsRequest, _version: int) -> DeleteGroupsResponse:
        results = []
        for name in request.groups_names:
            code = self.refusal()
            if not code:
                code = self._may_delete(name)
            if not code:
                del self.groups[name]
            results.append(DeletableGroupResult(group_id=name, error_code=code))
        return DeleteGroupsResponse(results=results)

    def _may_delete(self, name: str) -> int:
        if name not in self.groups:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if self.groups[name].members else 0

    # --- offsets -----------------------------------------------------------------------------------------

    def _offset_fetch(self, request: OffsetFetchRequest, _version: int) -> OffsetFetchResponse:
        answers = []
        for asked in request.groups:
            group = self.groups.get(asked.group_id, ScriptedGroup())
            wanted = list(group.offsets)
            if asked.topics is not None:
                wanted = [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]
            topics = [
                OffsetFetchResponseTopics(
                    name=name,
                    partitions=[
                        self._offset(group, (name, index), request.require_stable) for index in indexes
                    ],
                )
                for name, indexes in by_topic(wanted).items()
            ]
            answers.append(OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics))
        return OffsetFetchResponse(groups=answers)

    @staticmethod
    def _offset(group: ScriptedGroup, partition: Partition, stable: bool) -> OffsetFetchResponsePartitions:
        if stable and partition in group.pending:
            return OffsetFetchResponsePartitions(
                partition_index=partition[1],
                committed_offset=-1,
                error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
            )
        return OffsetFetchResponsePartitions(
            partition_index=partition[1], committed_offset=group.offsets.get(partition, -1), metadata="m"
        )

    def _offset_commit(self, request: OffsetCommitRequest, _version: int) -> OffsetCommitResponse:
        group = self.groups.setdefault(request.group_id, ScriptedGroup())
        code = ErrorCode.UNKNOWN_MEMBER_ID if group.members else self.refusal()
        topics = []
        for topic in request.topics:
            for entry in topic.partitions:
                if not code:
                    group.offsets[topic.name, entry.partition_index] = entry.committed_offset
            topics.append(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=entry.partition_index, error_code=code)
                        for entry in topic.partitions
                    ],
                )
            )
        return OffsetCommitResponse(topics=topics)

    def _offset_delete(self, request: OffsetDeleteRequest, _version: int) -> OffsetDeleteResponse:
        group = self.groups.get(request.group_id)
        if group is None:
            return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        subscribed = {topic for partitions in group.members.values() for topic, _ in partitions}
        topics = []
        for topic in request.topics:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in subscribed else 0
            for entry in topic.partitions:
                if not code:
                    group.offsets.pop((topic.name, entry.partition_index), None)
            topics.append(
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(partition_index=entry.partition_index, error_code=code)
                        for entry in topic.partitions
                    ],
                )
            )
        return OffsetDeleteResponse(topics=topics)

    def _list_offsets(self, request: ListOffsetsRequest, _version: int) -> ListOffsetsResponse:
        topics = []
        for topic in request.topics:
            partitions = []
            for asked in topic.partitions:
                log = self.logs.get((topic.name, asked.partition_index), ScriptedLog())
                latest = log.stable if request.isolation_level else log.high_watermark
                latest = log.end if request.replica_id == -2 else latest
                offset = {-1: latest, -2: log.first}.get(asked.timestamp, log.by_time)
                partitions.append(
                    ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset)
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)


def _server_side_assignment(partitions: list[Partition]) -> server_side.Assignment:
    return server_side.Assignment(
        topic_partitions=[
            server_side.TopicPartitions(topic_name=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    )
