"""AllocateProducerIds: a broker asks for a block of producer ids. Between brokers only. Version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from headrace.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: AllocateProducerIdsRequest, _call: Call
) -> AllocateProducerIdsResponse:
    try:
        block = await context.controller.allocate_producer_ids(
            BrokerId(request.broker_id), BrokerEpoch(request.broker_epoch)
        )
    except HeadraceError as error:
        return AllocateProducerIdsResponse(error_code=code_of(error))
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.length)


API: Final = Api(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, AllocateProducerIdsRequest, handle, internal=True)
