"""Groups of both protocols: who may be a member, look at a group, or delete it."""

from __future__ import annotations

from typing import Final

from headrace.broker.authorization.division import Entries, divide, each, keep
from headrace.broker.authorization.guard import ALLOWED, Decided, Partly, Verdict
from headrace.broker.authorization.plain_guards import on_group
from headrace.broker.authorization.refusals import GROUP_DENIED, TEXTS, TOPIC_DENIED
from headrace.broker.handlers.join_group import refused_in
from headrace.broker.handlers.sync_group import lacks_protocol
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.groups.classic.answers import sync_refused
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from headrace.protocol.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from headrace.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from headrace.protocol.messages.heartbeat_response import HeartbeatResponse
from headrace.protocol.messages.leave_group_response import LeaveGroupResponse
from headrace.protocol.messages.list_groups_request import ListGroupsRequest
from headrace.protocol.messages.list_groups_response import ListGroupsResponse
from headrace.protocol.messages.sync_group_request import SyncGroupRequest
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights

join_group: Final = on_group(Operation.READ, lambda _, call: refused_in(call.version, GROUP_DENIED))
heartbeat: Final = on_group(
    Operation.READ, lambda _request, _call: HeartbeatResponse(error_code=GROUP_DENIED)
)
leave_group: Final = on_group(
    Operation.READ, lambda _request, _call: LeaveGroupResponse(error_code=GROUP_DENIED)
)
_sync_group: Final = on_group(Operation.READ, lambda _request, _call: sync_refused(GROUP_DENIED))


def sync_group(context: RequestContext, rights: Rights, request: SyncGroupRequest, call: Call) -> Verdict:
    if lacks_protocol(request, call.version):
        return ALLOWED  # and refused by the handler, whatever the group is
    return _sync_group(context, rights, request, call)


def group_id(name: str) -> str:
    """An entry that is nothing but the id."""
    return name


def _not_described(name: str) -> DescribedGroup:
    return DescribedGroup(group_id=name, error_code=GROUP_DENIED)


def _not_deleted(name: str) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=name, error_code=GROUP_DENIED)


describe_groups: Final = each(
    Operation.DESCRIBE,
    ResourceType.GROUP,
    Entries("groups", group_id, DescribeGroupsResponse, "groups", _not_described),
)
delete_groups: Final = each(
    Operation.DELETE,
    ResourceType.GROUP,
    Entries("groups_names", group_id, DeleteGroupsResponse, "results", _not_deleted),
)


def list_groups(context: RequestContext, rights: Rights, request: ListGroupsRequest, _call: Call) -> Verdict:
    """Who may not describe the cluster hears of the groups that it may describe."""
    if rights.allows_silently(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return ALLOWED

    async def leave_out(response: ListGroupsResponse) -> ListGroupsResponse:
        response.groups = await keep(
            context,
            response.groups,
            lambda group: rights.allows_silently(Operation.DESCRIBE, ResourceType.GROUP, group.group_id),
        )
        return response

    return Partly(request, leave_out)


def consumer_group_heartbeat(
    context: RequestContext, rights: Rights, request: ConsumerGroupHeartbeatRequest, _call: Call
) -> Verdict:
    """One name that is denied refuses the subscription. What a pattern matches is left out of it instead
    (broker/handlers/consumer_group_heartbeat.py)."""
    if not rights.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=GROUP_DENIED, error_message=TEXTS[GROUP_DENIED])
    names = request.subscribed_topic_names
    if not names:
        return ALLOWED

    def when_denied(_allowed: list[str], _denied: list[str]) -> Decided:
        return ConsumerGroupHeartbeatResponse(error_code=TOPIC_DENIED, error_message=TEXTS[TOPIC_DENIED])

    return divide(
        context,
        names,
        lambda name: rights.allows(Operation.DESCRIBE, ResourceType.TOPIC, name),
        when_denied,
    )
