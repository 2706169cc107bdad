"""What the partitions of __consumer_offsets may hold: the class of key and value of each kind of record."""

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

_PAIRS: Final[tuple[tuple[type[Message], type[Message]], ...]] = (
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

KINDS: Final[Kinds] = {key.API_KEY: (key, value) for key, value in _PAIRS}
"""Records of share and streams groups are passed over."""
