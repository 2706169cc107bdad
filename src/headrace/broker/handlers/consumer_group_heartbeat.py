"""ConsumerGroupHeartbeat: the whole of the server-side group protocol (KIP-848) in one request.

Versions 0-1. 1: subscriptions by pattern, and member ids that the client makes itself (KIP-1082).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.coordinators.refusals import refusal_code
from headrace.broker.errors import text_of
from headrace.broker.promise import Promise
from headrace.groups.classic.joins import Client
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


def handle(
    broker: Broker, request: ConsumerGroupHeartbeatRequest, call: Call
) -> Promise[ConsumerGroupHeartbeatResponse]:
    client = Client(call.version, call.client_id or "", f"/{call.connection.peer_host}")
    asked = broker.coordinators.groups.ask(
        request.group_id,
        lambda shard, _ticket, now_ms: shard.consumer.heartbeat(request, client, now_ms),
    )
    return asked.then(_as_it_is, _refused)


def _as_it_is(response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    return response


def _refused(error: Exception) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal_code(error), error_message=text_of(error))


API: Final = Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, ConsumerGroupHeartbeatRequest, handle)
