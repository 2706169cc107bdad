"""FindCoordinator: which broker decides about a group or a transactional id.

Versions 0-6. 1: transactional ids. 4: several keys in one request. 5: the client knows a newer error of
transactions. 6: share groups, which do not exist here: refused as Kafka refuses them where they are off.
The internal topic is made by the first question. Kafka answers that one with COORDINATOR_NOT_AVAILABLE; here
it waits for the topic, and the client need not ask again.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.internal_topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from headrace.broker.requests.api import Api, Call
from headrace.coordinators.partitioning import partition_for
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

BATCHED: Final = 4
_MESSAGES: Final[dict[int, str]] = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: "This key type has no coordinator here.",
}
"""Before version 4 there is a text even where there is no error, as in Kafka; since then there is none."""


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


_TOPICS: Final[dict[int, str]] = {KeyType.GROUP: GROUPS_TOPIC, KeyType.TRANSACTION: TRANSACTIONS_TOPIC}


def handle(
    context: RequestContext, request: FindCoordinatorRequest, call: Call
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    topic = _TOPICS.get(request.key_type)
    if topic is None or context.metadata.image.topic(topic) is not None:
        return _answer(context, request, call, topic)
    return _create_first(context, request, call, topic)


async def _create_first(
    context: RequestContext, request: FindCoordinatorRequest, call: Call, topic: str
) -> FindCoordinatorResponse:
    await context.coordinators.internal_topics.ensure(topic)
    return _answer(context, request, call, topic)


def _answer(
    context: RequestContext, request: FindCoordinatorRequest, call: Call, topic: str | None
) -> FindCoordinatorResponse:
    if call.version >= BATCHED:
        return FindCoordinatorResponse(
            coordinators=[_find(context, key, call, topic) for key in request.coordinator_keys]
        )
    return of_one_key(_find(context, request.key, call, topic))


def of_one_key(found: Coordinator) -> FindCoordinatorResponse:
    """As versions before 4 say it."""
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=_MESSAGES.get(found.error_code, ""),
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(context: RequestContext, key: str, call: Call, name: str | None) -> Coordinator:
    if name is None:
        return not_found(key, ErrorCode.INVALID_REQUEST)
    topic = context.metadata.image.topic(name)
    if topic is None:
        return not_found(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leader = topic.leader(partition_for(key, len(topic)))
    for node in context.metadata.nodes(call.connection.listener):
        if node.broker_id == leader:
            return Coordinator(key=key, node_id=node.broker_id, host=node.host, port=node.port)
    return not_found(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def not_found(key: str, code: ErrorCode) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code)


API: Final = Api(ApiKey.FIND_COORDINATOR, 0, 6, FindCoordinatorRequest, handle)
