"""ConsumerGroupDescribe: DESCRIBE on the group, and on every topic that its members have or should have.

A group with a topic that is denied is refused as a whole, so that nobody takes a part of its members'
partitions for all of them. Names that members subscribe to prove nothing about topics: Kafka shows them, and
so does this.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.broker.authorization.division import Entries, divide, without
from headrace.broker.authorization.groups import group_id
from headrace.broker.authorization.guard import Partly, Verdict
from headrace.broker.authorization.refusals import GROUP_DENIED, TOPIC_DENIED
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.message import Message
from headrace.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from headrace.protocol.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights


def _not_described(name: str) -> DescribedGroup:
    return DescribedGroup(group_id=name, error_code=GROUP_DENIED)


_GROUPS = Entries("group_ids", group_id, ConsumerGroupDescribeResponse, "groups", _not_described)


def consumer_group_describe(
    context: RequestContext, rights: Rights, request: ConsumerGroupDescribeRequest, _call: Call
) -> Verdict:
    async def hide(response: ConsumerGroupDescribeResponse) -> Message:
        response.groups = [await _as_seen(context, rights, group) for group in response.groups]
        return response

    return divide(
        context,
        request.group_ids,
        lambda name: rights.allows(Operation.DESCRIBE, ResourceType.GROUP, name),
        lambda allowed, denied: without(request, _GROUPS, allowed, denied, hide),
        Partly(request, hide),
    )


async def _as_seen(context: RequestContext, rights: Rights, group: DescribedGroup) -> DescribedGroup:
    turns = context.runtime.turns
    for name in dict.fromkeys(_topics(group)):
        if turns.is_over:
            await turns.next()
        if not rights.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            return DescribedGroup(
                group_id=group.group_id,
                error_code=TOPIC_DENIED,
                error_message="the principal may not describe all topics of the group",
            )
    return group


def _topics(group: DescribedGroup) -> Iterable[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name
