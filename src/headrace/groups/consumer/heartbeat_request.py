"""What every heartbeat must say, whatever the state of its group."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.core.errors import InvalidRequest, UnsupportedAssignor
from headrace.groups.consumer.member import LEFT, LEFT_FOR_A_WHILE
from headrace.groups.consumer.reconciliation import Owned
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEFT:
        _not_empty(request.member_id, "MemberId")
    _not_empty(request.group_id, "GroupId")
    _not_empty(request.instance_id, "InstanceId")
    _not_empty(request.rack_id, "RackId")
    if epoch == 0:
        _check_join(request)
    elif epoch == LEFT_FOR_A_WHILE:
        if request.instance_id is None:
            raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}."
        )


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise InvalidRequest(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
        )


def _not_empty(value: str | None, name: str) -> None:
    """Null is not empty; only blanks is."""
    if value is not None and not value.strip():
        raise InvalidRequest(f"{name} can't be empty.")


def owned_of(request: ConsumerGroupHeartbeatRequest) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: topic.partitions for topic in request.topic_partitions}


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """It says everything about the member, so it is answered with the whole assignment."""
    return request.member_epoch == 0 or (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
