"""DeleteTopics.

Versions 1-6. 4: flexible. 5: error messages, and over a quota a topic is refused. 6: by topic id.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import each_in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.controller.operations import DeletedTopic, TopicDeletion
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest
from headrace.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_STRICT: Final = 5
"""From here on clients know THROTTLING_QUOTA_EXCEEDED."""


async def handle(context: RequestContext, request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    if call.version >= 6:
        deletion = [TopicDeletion(topic.name, topic.topic_id) for topic in request.topics]
    else:
        deletion = [TopicDeletion(name) for name in request.topic_names]
    if not context.runtime.config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        text = "delete.topic.enable is false on this broker"
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(
                    name=item.name, topic_id=item.topic_id, error_code=code, error_message=text
                )
                for item in deletion
            ]
        )
    quota = context.mutations.of(call.principal, call.client_id, is_strict=call.version >= FIRST_STRICT)
    deletion, refused = quota.divide(
        deletion,
        partial(_partitions, context),
        lambda topic, error: DeletedTopic(topic.name, topic.topic_id, error),
    )
    sizes = {topic: _partitions(context, topic) for topic in deletion}
    outcomes = await each_in_time(
        context.runtime,
        context.peers.reachability,
        context.controller.delete_topics(deletion),
        lambda error: [DeletedTopic(topic.name, topic.topic_id, error) for topic in deletion],
    )
    for topic, outcome in zip(deletion, outcomes, strict=False):
        if outcome.error is not None:
            quota.give_back(sizes[topic])
    outcomes += refused
    return DeleteTopicsResponse(
        throttle_time_ms=quota.throttle_ms,
        responses=[
            DeletableTopicResult(
                name=outcome.name,
                topic_id=outcome.topic_id,
                error_code=code_of(outcome.error),
                error_message=text_of(outcome.error),
            )
            for outcome in outcomes
        ],
    )


def _partitions(context: RequestContext, topic: TopicDeletion) -> int:
    image = context.metadata.image
    known = image.topic(topic.name) if topic.name is not None else image.topic_by_id(topic.topic_id)
    return 0 if known is None else len(known)


API: Final = Api(ApiKey.DELETE_TOPICS, 1, 6, DeleteTopicsRequest, handle, at_controller=True)
