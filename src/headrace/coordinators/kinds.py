"""The kinds of records in Kafka's internal topics that are understood here."""

from __future__ import annotations

from typing import Final

from headrace.coordinators.codec import Kinds
from headrace.protocol.message import Message
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
from headrace.protocol.stored.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
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
from headrace.protocol.stored.group_metadata_key import GroupMetadataKey
from headrace.protocol.stored.group_metadata_value import GroupMetadataValue
from headrace.protocol.stored.legacy_offset_commit_key import LegacyOffsetCommitKey
from headrace.protocol.stored.legacy_offset_commit_value import LegacyOffsetCommitValue
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue
from headrace.protocol.stored.transaction_log_key import TransactionLogKey
from headrace.protocol.stored.transaction_log_value import TransactionLogValue


def _by_kind(*classes: tuple[type[Message], type[Message]]) -> Kinds:
    return {key.API_KEY: (key, value) for key, value in classes}


GROUP_KINDS: Final = _by_kind(
    (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    (OffsetCommitKey, OffsetCommitValue),
    (GroupMetadataKey, GroupMetadataValue),
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
"""What __consumer_offsets may hold. The records of share and streams groups are passed over."""

TRANSACTION_KINDS: Final = _by_kind((TransactionLogKey, TransactionLogValue))
