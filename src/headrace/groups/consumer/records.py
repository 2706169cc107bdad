"""The records of a consumer group, in Kafka's schemas. Each function makes one; None as a value removes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from uuid import UUID

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.consumer.member import ConsumerMember, Held
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.protocol.stored.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from headrace.protocol.stored.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from headrace.protocol.stored.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from headrace.protocol.stored.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from headrace.protocol.stored.consumer_group_metadata_key import ConsumerGroupMetadataKey
from headrace.protocol.stored.consumer_group_metadata_value import ConsumerGroupMetadataValue
from headrace.protocol.stored.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from headrace.protocol.stored.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from headrace.protocol.stored.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from headrace.protocol.stored.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from headrace.protocol.stored.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from headrace.protocol.stored.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from headrace.protocol.stored.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def subscription(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_names),
        subscribed_topic_regex=member.subscribed_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic,
    )
    return CoordinatorRecord(
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value
    )


def target(group_id: str, member_id: str, partitions: Mapping[UUID, Set[int]]) -> CoordinatorRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
        ]
    )
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value
    )


def target_epoch(group_id: str, epoch: int, computed_at_ms: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=computed_at_ms
        ),
    )


def current(group_id: str, member: ConsumerMember) -> CoordinatorRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.pending_revocation),
    )
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value
    )


def resolved(group_id: str, regex: str, found: ResolvedRegex) -> CoordinatorRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(found.topics), version_=found.version, timestamp=found.timestamp_ms
    )
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value
    )


def without_regex(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    )


def without_member(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """What it holds comes first: the member must hold nothing when it goes."""
    return [
        CoordinatorRecord(
            ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def without_group(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str], *, with_partition_metadata: bool
) -> list[CoordinatorRecord]:
    """The group's own record last. `with_partition_metadata`: an older version of Kafka wrote one."""
    records: list[CoordinatorRecord] = []
    for member_id in member_ids:
        records.extend(without_member(group_id, member_id))
    records.append(CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None))
    records.extend(without_regex(group_id, regex) for regex in regexes)
    if with_partition_metadata:
        records.append(without_partition_metadata(group_id))
    records.append(CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None))
    return records


def without_partition_metadata(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def held_from(topics: list[TopicPartitions], member_epoch: int) -> Held:
    """Records of older versions have no epochs. The member's own is the safe one: the newest possible."""
    held: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held


def _with_epochs(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in held.items()
    ]
