"""How each kind of record changes a group."""

from __future__ import annotations

from headrace.coordinators.decision import CoordinatorRecord
from headrace.groups.consumer.group import ConsumerGroup
from headrace.groups.consumer.member import LEFT, NOTHING_HELD, ConsumerMember, MemberState
from headrace.groups.consumer.records import held_from
from headrace.groups.consumer.resolved_regex import ResolvedRegex
from headrace.groups.group_table import GroupTable
from headrace.protocol.stored.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from headrace.protocol.stored.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
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
)
from headrace.protocol.stored.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from headrace.protocol.stored.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)


def replay(groups: GroupTable, record: CoordinatorRecord, timestamp_ms: int) -> None:
    """A value brings its group into being. A tombstone for what is not there is passed over: a compacted log
    keeps the tombstones of what it has forgotten."""
    key, value = record.key, record.value
    group_id: str = getattr(key, "group_id", "")
    group = groups.of_class(group_id, ConsumerGroup)
    if group is None:
        if value is None or not group_id:
            return
        group = ConsumerGroup(group_id)
        groups.put(group)
    if isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
        assert value is None or isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
        _replay_current(group, key.member_id, value)
    elif isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
        assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMemberValue)
        _replay_target(group, key.member_id, value)
    elif isinstance(key, ConsumerGroupMemberMetadataKey):
        assert value is None or isinstance(value, ConsumerGroupMemberMetadataValue)
        _replay_subscription(group, key.member_id, value)
    elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
        assert value is None or isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
        group.assignment_epoch = -1 if value is None else value.assignment_epoch
        group.assignment_timestamp_ms = 0 if value is None else value.assignment_timestamp
    elif isinstance(key, ConsumerGroupRegularExpressionKey):
        assert value is None or isinstance(value, ConsumerGroupRegularExpressionValue)
        _replay_regex(group, key.regular_expression, value)
    elif isinstance(key, ConsumerGroupPartitionMetadataKey):
        group.has_partition_metadata = value is not None
    elif isinstance(key, ConsumerGroupMetadataKey):
        assert value is None or isinstance(value, ConsumerGroupMetadataValue)
        if value is None:
            groups.remove(group_id)
        else:
            group.epoch = value.epoch
            group.epoch_written_ms = timestamp_ms
            group.metadata_hash = value.metadata_hash


def _replay_subscription(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group.remove_member(member_id)
        return
    member = group.members.get(member_id) or ConsumerMember(member_id)
    group.put_member(
        member.changed(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            subscribed_names=frozenset(value.subscribed_topic_names),
            subscribed_regex=value.subscribed_topic_regex or "",
            classic=value.classic_member_metadata,
        )
    )


def _replay_current(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(member_id)
    if value is None:
        if member is not None:
            group.put_member(
                member.changed(
                    epoch=LEFT,
                    previous_epoch=LEFT,
                    assigned=NOTHING_HELD,
                    pending_revocation=NOTHING_HELD,
                )
            )
        return
    group.put_member(
        (member or ConsumerMember(member_id)).changed(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned=held_from(value.assigned_partitions, value.member_epoch),
            pending_revocation=held_from(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _replay_target(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupTargetAssignmentMemberValue | None
) -> None:
    if value is None:
        group.targets.pop(member_id, None)
    else:
        group.targets[member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _replay_regex(
    group: ConsumerGroup, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    if value is None:
        group.resolved.pop(regex, None)
    else:
        group.resolved[regex] = ResolvedRegex(frozenset(value.topics), value.version_, value.timestamp)
