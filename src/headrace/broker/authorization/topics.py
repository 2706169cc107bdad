"""CreateTopics, DeleteTopics, CreatePartitions: topics and their sizes.

CREATE and DELETE may be had on the cluster, for all topics, or on each topic. A fork needs more: `forks.py`.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.authorization.division import Entries, divide, each, without
from headrace.broker.authorization.forks import Refusal, refusal_of_fork
from headrace.broker.authorization.guard import ALLOWED, Decided, Partly, Verdict
from headrace.broker.authorization.refusals import TEXTS, TOPIC_DENIED
from headrace.broker.authorization.topic_metadata import may_create
from headrace.broker.requests.allowed_operations import may_see_topic
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.core.ids import NO_TOPIC_ID
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_partitions_request import CreatePartitionsTopic
from headrace.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from headrace.security.acl import CLUSTER_NAME, Operation, ResourceType
from headrace.security.rights import Rights

DESCRIBES_FROM: Final = 5
"""The version of CreateTopics whose response describes what was made."""
BY_ID_FROM: Final = 6
"""The version of DeleteTopics that may name topics by id."""
_NOT_CREATED: Final = Refusal(TOPIC_DENIED, TEXTS[TOPIC_DENIED])
_NO_SUCH_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_NO_SUCH_ID: Final = ErrorCode.UNKNOWN_TOPIC_ID


def _created_name(topic: CreatableTopic) -> str:
    return topic.name


def create_topics(
    context: RequestContext, rights: Rights, request: CreateTopicsRequest, call: Call
) -> Verdict:
    """A topic that is denied is denied whether or not it exists."""
    refusals: dict[str, Refusal] = {}

    def is_allowed(topic: CreatableTopic) -> bool:
        refusal = refusal_of_fork(context, rights, topic) if may_create(rights, topic.name) else _NOT_CREATED
        if refusal is not None:
            refusals[topic.name] = refusal
        return refusal is None

    def refuse(topic: CreatableTopic) -> CreatableTopicResult:
        code, text = refusals[topic.name]
        return CreatableTopicResult(name=topic.name, error_code=code, error_message=text)

    created = Entries("topics", _created_name, CreateTopicsResponse, "topics", refuse)

    def hide(response: CreateTopicsResponse) -> CreateTopicsResponse:
        return _without_configs(response, rights)

    hides = call.version >= DESCRIBES_FROM and not all(
        _may_describe_configs(rights, topic.name) for topic in request.topics
    )
    return divide(
        context,
        request.topics,
        is_allowed,
        lambda allowed, denied: without(request, created, allowed, denied, hide if hides else None),
        Partly(request, hide) if hides else ALLOWED,
    )


def _may_describe_configs(rights: Rights, name: str) -> bool:
    return rights.allows_silently(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)


def _without_configs(response: CreateTopicsResponse, rights: Rights) -> CreateTopicsResponse:
    """What was made is told, but not how it is configured."""
    for topic in response.topics:
        if not topic.error_code and not _may_describe_configs(rights, topic.name):
            topic.topic_config_error_code = TOPIC_DENIED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []
    return response


def delete_topics(
    context: RequestContext, rights: Rights, request: DeleteTopicsRequest, call: Call
) -> Verdict:
    """What does not exist now is never handed on without the right: it may exist a moment later."""

    def is_allowed(topic: DeleteTopicState) -> bool:
        name = topic.name if topic.name is not None else _name_of(context, topic)
        if name is None or (context.metadata.image.topic(name) is None and may_see_topic(rights, name)):
            return rights.allows_silently(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)
        return rights.allows_any(
            (Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME),
            (Operation.DELETE, ResourceType.TOPIC, name),
        )

    def when_denied(allowed: list[DeleteTopicState], denied: list[DeleteTopicState]) -> Decided:
        refused = {(topic.name, topic.topic_id): _not_deleted(context, rights, topic) for topic in denied}
        if not allowed:
            return DeleteTopicsResponse(responses=list(refused.values()))
        if call.version >= BY_ID_FROM:
            request.topics = allowed
        else:
            request.topic_names = [topic.name or "" for topic in allowed]

        def complete(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
            response.responses += refused.values()
            return response

        return Partly(request, complete)

    if call.version >= BY_ID_FROM:
        return divide(context, request.topics, is_allowed, when_denied)
    named = [DeleteTopicState(name=name) for name in request.topic_names]
    return divide(context, named, is_allowed, when_denied)


def _name_of(context: RequestContext, topic: DeleteTopicState) -> str | None:
    known = context.metadata.image.topic_by_id(topic.topic_id)
    return None if known is None else known.name


def _not_deleted(context: RequestContext, rights: Rights, topic: DeleteTopicState) -> DeletableTopicResult:
    """By id the name is told to those who may describe the topic. By name the id is told to nobody."""
    if topic.name is not None:
        exists = context.metadata.image.topic(topic.name) is not None
        code = TOPIC_DENIED if exists or not may_see_topic(rights, topic.name) else _NO_SUCH_TOPIC
        return DeletableTopicResult(name=topic.name, topic_id=NO_TOPIC_ID, error_code=code)
    name = _name_of(context, topic)
    code = _NO_SUCH_ID if name is None else TOPIC_DENIED
    seen = name if name is not None and may_see_topic(rights, name) else None
    return DeletableTopicResult(name=seen, topic_id=topic.topic_id, error_code=code)


def _grown_name(topic: CreatePartitionsTopic) -> str:
    return topic.name


def _not_grown(topic: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=topic.name, error_code=TOPIC_DENIED, error_message=TEXTS[TOPIC_DENIED]
    )


create_partitions: Final = each(
    Operation.ALTER,
    ResourceType.TOPIC,
    Entries("topics", _grown_name, CreatePartitionsResponse, "results", _not_grown),
)
