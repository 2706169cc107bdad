"""OffsetFetch: DESCRIBE on each group, and on each topic.

Who asks for all offsets of a group is told of the topics that it may describe. A group whose offsets cannot
be told says only that: what is denied within it is not answered beside.
"""

from __future__ import annotations

from typing import Any

from headrace.broker.authorization.division import arrange, keep
from headrace.broker.authorization.guard import ALLOWED, Partly, Verdict
from headrace.broker.authorization.offset_commits import name_by_id
from headrace.broker.authorization.refusals import GROUP_DENIED, TOPIC_DENIED
from headrace.broker.handlers.offset_fetch import (
    FIRST_WITH_SEVERAL_GROUPS,
    FIRST_WITH_TOPIC_IDS,
    of_one_group,
    only_group,
    refused_group,
)
from headrace.broker.requests.allowed_operations import may_see_topic
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.groups.offsets.fetches import missing
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequest
from headrace.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights


def offset_fetch(context: RequestContext, rights: Rights, request: OffsetFetchRequest, call: Call) -> Verdict:
    if call.version < FIRST_WITH_SEVERAL_GROUPS:
        return _of_one_group(context, rights, request, call.version)
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    served, refused = [], []
    hidden: dict[str, list[OffsetFetchResponseTopics]] = {}
    everything: set[str] = set()
    for group in request.groups:
        if not rights.allows(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            refused.append(refused_group(group, call.version, GROUP_DENIED))
            continue
        served.append(group)
        if group.topics is None:
            everything.add(group.group_id)
        elif denied := _take_denied(context, rights, group, by_id):
            hidden[group.group_id] = denied
    if not refused and not hidden and not everything:
        return ALLOWED
    if not served:
        return OffsetFetchResponse(groups=refused)
    asked = [group.group_id for group in request.groups]
    request.groups = served

    async def complete(response: OffsetFetchResponse) -> OffsetFetchResponse:
        for group in response.groups:
            if group.group_id in everything:
                group.topics = await _visible(context, rights, group.topics)
            if not group.error_code:
                group.topics += hidden.get(group.group_id, ())
        response.groups += refused
        arrange(response.groups, asked, _group_id)
        return response

    return Partly(request, complete)


def _group_id(group: OffsetFetchResponseGroup) -> str:
    return group.group_id


def _of_one_group(
    context: RequestContext, rights: Rights, request: OffsetFetchRequest, version: int
) -> Verdict:
    if not rights.allows(Operation.DESCRIBE, ResourceType.GROUP, request.group_id):
        return of_one_group(refused_group(only_group(request), version, GROUP_DENIED))
    if request.topics is None:

        async def leave_out(response: OffsetFetchResponse) -> OffsetFetchResponse:
            response.topics = await _visible(context, rights, response.topics)
            return response

        return Partly(request, leave_out)
    denied = _take_denied(context, rights, request, by_id=False)
    if not denied:
        return ALLOWED

    def complete(response: OffsetFetchResponse) -> OffsetFetchResponse:
        if not response.error_code:
            response.topics += of_one_group(OffsetFetchResponseGroup(topics=denied)).topics
        return response

    return Partly(request, complete)


def _take_denied(
    context: RequestContext, rights: Rights, asked: Any, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    """Takes the denied topics out of what a group is asked for, and answers them. All of them fit into one
    part of a request (broker/requests/request_shapes.py)."""
    name_of = name_by_id(context, by_id)
    allowed, denied = [], []
    for topic in asked.topics:
        name = name_of(topic)
        if name is None or rights.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            allowed.append(topic)
            continue
        rows = [missing(index, TOPIC_DENIED) for index in topic.partition_indexes]
        answer = OffsetFetchResponseTopics(name=topic.name, partitions=rows)
        if by_id:
            answer.topic_id = topic.topic_id
        denied.append(answer)
    if denied:
        asked.topics = allowed
    return denied


async def _visible(context: RequestContext, rights: Rights, topics: list[Any]) -> list[Any]:
    return await keep(context, topics, lambda topic: may_see_topic(rights, topic.name))
