"""Groups as their coordinators know them: which there are, who is in them, and their end.

There are two kinds with members that we show: `classic` groups, whose members assign partitions among
themselves, and `consumer` groups (KIP-848), whose coordinator does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.coordinators import CoordinatorKind, every_broker, outcomes
from headrace.client.errors import Refused
from headrace.client.refusals import refusal
from headrace.core.errors import HeadraceError
from headrace.core.ids import TopicPartition
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages import consumer_group_describe_response as server_side
from headrace.protocol.messages import describe_groups_response as client_side
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from headrace.protocol.messages.delete_groups_request import DeleteGroupsRequest
from headrace.protocol.messages.delete_groups_response import DeleteGroupsResponse
from headrace.protocol.messages.describe_groups_request import DescribeGroupsRequest
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.list_groups_response import ListGroupsResponse
from headrace.protocol.primitives import Reader

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of classic groups that read topics. Connect and others have their own."""
DEAD: Final = "Dead"
EMPTY: Final = "Empty"


class ListedGroup(NamedTuple):
    group_id: str
    kind: str
    """classic, consumer, share or streams; empty where the broker is too old to say."""
    state: str
    protocol_type: str
    coordinator: int


class Member(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assigned: Sequence[TopicPartition]
    epoch: int | None = None
    target: Sequence[TopicPartition] | None = None
    """Of consumer groups: what the member shall have once it has given up what goes to others."""
    topics: Sequence[str] | None = None
    regex: str | None = None
    rack: str | None = None


class Group(NamedTuple):
    group_id: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: int
    members: Sequence[Member]
    epoch: int | None = None
    assignment_epoch: int | None = None

    @property
    def reads_whole_topics(self) -> bool:
        """Its members subscribe. A process that assigns itself partitions and only commits here makes a group
        without a protocol, and may rightly leave partitions alone."""
        return self.kind == CONSUMER or self.protocol_type == CONSUMER_PROTOCOL

    @property
    def owners(self) -> dict[TopicPartition, Member]:
        return {partition: member for member in self.members for partition in member.assigned}


async def list_groups(cluster: Cluster) -> list[ListedGroup]:
    """Of all coordinators, by name."""

    async def ask(broker_id: int) -> list[ListedGroup]:
        reply = await cluster.ask_broker(broker_id, ListGroupsRequest(), ListGroupsResponse)
        if reply.error_code:
            raise refusal(reply.error_code, f"the groups of broker {broker_id}")
        return [
            ListedGroup(
                group.group_id, group.group_type.lower(), group.group_state, group.protocol_type, broker_id
            )
            for group in reply.groups
        ]

    # A group whose coordinator moves while the brokers are asked may be told of twice.
    found = {group.group_id: group for group in await every_broker(cluster, ask)}
    return sorted(found.values())


async def describe_groups(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, Group | Refused]:
    """Each group, or why it cannot be described. One that does not exist is refused."""
    wanted = list(dict.fromkeys(group_ids))
    found: dict[str, Group | Refused] = {}
    if (await cluster.any_broker()).supports(ApiKey.CONSUMER_GROUP_DESCRIBE):
        told = await outcomes(
            cluster,
            CoordinatorKind.GROUP,
            wanted,
            lambda broker, keys: _consumer_groups(cluster, broker, keys),
        )
        found = {key: group for key, group in told.items() if not _is_of_another_kind(group)}
    classic = await outcomes(
        cluster,
        CoordinatorKind.GROUP,
        [key for key in wanted if key not in found],
        lambda broker, keys: _classic_groups(cluster, broker, keys),
    )
    return {key: found[key] if key in found else classic[key] for key in wanted}


async def describe_group(cluster: Cluster, group_id: str) -> Group:
    (outcome,) = (await describe_groups(cluster, [group_id])).values()
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


async def describe_or_absent(cluster: Cluster, group_id: str) -> Group | None:
    """None where there is no such group."""
    try:
        return await describe_group(cluster, group_id)
    except Refused as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


async def delete_groups(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, Refused | None]:
    """None for each that is gone, or why it is not."""

    async def ask(broker_id: int, keys: list[str]) -> Mapping[str, Refused | None]:
        request = DeleteGroupsRequest(groups_names=keys)
        reply = await cluster.ask_broker(broker_id, request, DeleteGroupsResponse)
        return {
            result.group_id: refusal(result.error_code, f"group {result.group_id}", result.error_message)
            if result.error_code
            else None
            for result in reply.results
        }

    return await outcomes(cluster, CoordinatorKind.GROUP, group_ids, ask)


def _is_of_another_kind(group: Group | Refused) -> bool:
    """To a coordinator a group of the other kind is as unknown as one that does not exist."""
    return isinstance(group, Refused) and group.code in (
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNSUPPORTED_VERSION,
    )


async def _consumer_groups(cluster: Cluster, broker_id: int, keys: list[str]) -> dict[str, Group | Refused]:
    reply = await cluster.ask_broker(
        broker_id, ConsumerGroupDescribeRequest(group_ids=keys), server_side.ConsumerGroupDescribeResponse
    )
    return {group.group_id: _consumer_group(group, broker_id) for group in reply.groups}


def _consumer_group(group: server_side.DescribedGroup, broker_id: int) -> Group | Refused:
    if group.error_code:
        return refusal(group.error_code, f"group {group.group_id}", group.error_message)
    members = [
        Member(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            _partitions(member.assignment),
            member.member_epoch,
            _partitions(member.target_assignment),
            member.subscribed_topic_names,
            member.subscribed_topic_regex or None,
            member.rack_id,
        )
        for member in group.members
    ]
    return Group(
        group.group_id,
        CONSUMER,
        group.group_state,
        CONSUMER_PROTOCOL,
        group.assignor_name,
        broker_id,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _partitions(assignment: server_side.Assignment) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )


async def _classic_groups(cluster: Cluster, broker_id: int, keys: list[str]) -> dict[str, Group | Refused]:
    reply = await cluster.ask_broker(
        broker_id, DescribeGroupsRequest(groups=keys), client_side.DescribeGroupsResponse
    )
    return {group.group_id: _classic_group(group, broker_id) for group in reply.groups}


def _classic_group(group: client_side.DescribedGroup, broker_id: int) -> Group | Refused:
    # Before version 6 a group that does not exist is said to be dead, without an error.
    code = group.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if group.group_state == DEAD else 0)
    if code:
        return refusal(code, f"group {group.group_id}")
    members = [
        Member(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host.removeprefix("/"),
            classic_assignment(member.member_assignment) if group.protocol_type == CONSUMER_PROTOCOL else [],
        )
        for member in group.members
    ]
    return Group(
        group.group_id,
        CLASSIC,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        broker_id,
        members,
    )


def classic_assignment(data: bytes) -> list[TopicPartition]:
    """What a member of a classic group was given. Members write it, not brokers, so it may be anything."""
    if not data:
        return []
    try:
        reader = Reader(data)
        version = min(reader.int16(), ConsumerProtocolAssignment.MAX_VERSION)
        assignment = ConsumerProtocolAssignment.decode(reader, version)
    except HeadraceError:
        return []
    return sorted(
        TopicPartition(topic.topic, index)
        for topic in assignment.assigned_partitions
        for index in topic.partitions
    )
