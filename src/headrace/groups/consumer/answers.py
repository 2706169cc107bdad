"""The answers to a heartbeat of the server-side protocol."""

from __future__ import annotations

from headrace.groups.consumer.member import ConsumerMember
from headrace.protocol.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def heartbeat_answer(
    member: ConsumerMember, interval_ms: int, *, with_assignment: bool
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=_assignment(member) if with_assignment else None,
    )


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in member.assigned.items()
        ]
    )
