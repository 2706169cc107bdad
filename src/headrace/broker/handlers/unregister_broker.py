"""UnregisterBroker: forget a broker that will not come back. Version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of, text_of
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerId
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from headrace.protocol.messages.unregister_broker_response import UnregisterBrokerResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: UnregisterBrokerRequest, _call: Call
) -> UnregisterBrokerResponse:
    gone = BrokerId(request.broker_id)
    try:
        await context.controller.submit(lambda machine: machine.unregister_broker(gone))
    except HeadraceError as error:
        return UnregisterBrokerResponse(error_code=code_of(error), error_message=text_of(error))
    return UnregisterBrokerResponse(error_message=None)


API: Final = Api(ApiKey.UNREGISTER_BROKER, 0, 0, UnregisterBrokerRequest, handle, at_controller=True)
