"""BrokerHeartbeat: a broker wants to stop, or a log directory of it has died. Between brokers only.

Version 1. 1: dead directories (KIP-858). That a broker lives is told by its metadata fetches, so no heartbeat
is sent while nothing is asked for. Not done: 2, cordoned directories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: BrokerHeartbeatRequest, _call: Call
) -> BrokerHeartbeatResponse:
    sender, epoch = BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
    remaining = -1
    try:
        if request.offline_log_dirs:
            dead = request.offline_log_dirs
            await context.controller.submit(lambda machine: machine.directories_offline(sender, epoch, dead))
        if request.want_shut_down:
            remaining = await context.controller.submit(lambda machine: machine.begin_shutdown(sender, epoch))
    except HeadraceError as error:
        return BrokerHeartbeatResponse(error_code=code_of(error))
    registration = context.metadata.image.brokers.get(sender)
    return BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= context.metadata.offset,
        is_fenced=registration is None or registration.fenced,
        should_shut_down=remaining == 0,
    )


API: Final = Api(ApiKey.BROKER_HEARTBEAT, 1, 1, BrokerHeartbeatRequest, handle, internal=True)
