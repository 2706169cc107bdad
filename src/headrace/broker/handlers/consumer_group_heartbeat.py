"""ConsumerGroupHeartbeat: the whole of the server-side group protocol (KIP-848) in one request.

Versions 0-1. 1: subscriptions by pattern, and member ids that the client makes itself (KIP-1082). A pattern
never matches a topic that the client may not describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.requests.allowed_operations import topics_seen_by
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import text_of
from headrace.core.completion import Completion
from headrace.core.errors import CoordinatorNotAvailable, InvalidRequest
from headrace.groups.classic.joins import Client
from headrace.groups.consumer.regexes import Unresolved
from headrace.groups.sizes import ITEM_BYTES, MEMBER_BYTES
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

LEAST_NAMES: Final = 10_000
"""A member may subscribe to so many, whatever exists. All of them are looked at in one go, with each change
of the group or of the metadata."""
MOST_LOOKUPS: Final = 3
"""For one heartbeat: what was found may be forgotten before it is asked for, where very many come at once."""


def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest, call: Call
) -> ConsumerGroupHeartbeatResponse | Completion[ConsumerGroupHeartbeatResponse]:
    if len(request.subscribed_topic_names or ()) > max(
        LEAST_NAMES, 2 * len(context.metadata.image.topics_by_name)
    ):
        return _refused(InvalidRequest("a member subscribes to more topics by name than there can be"))
    if request.member_epoch == 0 and not context.coordinators.group_state.admits(_size(request, call)):
        return _refused(CoordinatorNotAvailable("the coordinator has no memory for more members"))
    client = Client(
        call.version, call.client_id or "", f"/{call.connection.peer_host}", topics_seen_by(call.rights)
    )
    return _Heartbeat(context, request, client).answer


class _Heartbeat:
    """Asked again when the topics of a new pattern are known."""

    __slots__ = ("_client", "_context", "_request", "_resolved", "answer")

    def __init__(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> None:
        self.answer: Completion[ConsumerGroupHeartbeatResponse] = Completion()
        self._context = context
        self._request = request
        self._client = client
        self._resolved = 0
        self._ask()

    def _ask(self) -> None:
        request, client = self._request, self._client
        asked = self._context.coordinators.groups.ask(
            request.group_id,
            lambda shard, _, now_ms: shard.consumer.heartbeat(request, client, now_ms),
        )
        asked.when_done(self._on_decided)

    def _on_decided(self, decided: Completion[ConsumerGroupHeartbeatResponse]) -> None:
        error, patterns = decided.error, self._context.coordinators.patterns
        if error is None:
            self.answer.complete(decided.result())
            patterns.refresh()
        elif isinstance(error, Unresolved) and self._resolved < MOST_LOOKUPS:
            self._resolved += 1
            patterns.resolve(error.regex).when_done(self._on_resolved)
        else:
            self.answer.complete(_refused(error))

    def _on_resolved(self, resolved: Completion[None]) -> None:
        if resolved.error is None:
            self._ask()
        else:
            self.answer.complete(_refused(resolved.error))


def _size(request: ConsumerGroupHeartbeatRequest, call: Call) -> int:
    """What a member that joins takes."""
    size = MEMBER_BYTES + len(call.client_id or "") + len(request.instance_id or "") + len(request.member_id)
    size += len(request.subscribed_topic_regex or "")
    return size + sum(ITEM_BYTES + len(name) for name in request.subscribed_topic_names or ())


def _refused(error: Exception) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal_code(error), error_message=text_of(error))


API: Final = Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, ConsumerGroupHeartbeatRequest, handle)
