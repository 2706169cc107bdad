"""Who may fork a topic: a fork shows what its origin holds, so READ on that one is needed beside CREATE."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.broker.authorization.refusals import TOPIC_DENIED
from headrace.broker.requests.context import RequestContext
from headrace.config.tiering import FORK, fork_point
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import CreatableTopic
from headrace.security.acl import Operation, ResourceType
from headrace.security.rights import Rights


class Refusal(NamedTuple):
    code: ErrorCode
    text: str


_DENIED: Final = Refusal(
    TOPIC_DENIED, "the principal may not read the topic that is to be forked: READ on it"
)
_UNKNOWN: Final = Refusal(
    ErrorCode.UNKNOWN_TOPIC_ID, "this broker knows no topic of the id that is to be forked"
)


def refusal_of_fork(context: RequestContext, rights: Rights, topic: CreatableTopic) -> Refusal | None:
    """None if it is no fork as well. An origin that is not known here is never handed on: the controller may
    know it already, and asks nobody for rights."""
    for config in topic.configs:
        if config.name != FORK or not config.value:
            continue
        try:
            point = fork_point(config.value)
        except ValueError:
            continue  # the controller says that it is none
        if point is None:
            continue
        origin = context.metadata.image.topic_by_id(point.origin)
        if origin is None:
            return _UNKNOWN
        if not rights.allows(Operation.READ, ResourceType.TOPIC, origin.name):
            return _DENIED
    return None
