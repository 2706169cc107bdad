"""InitProducerId: an identity for an idempotent producer.

Versions 0-5. 3: a producer may name the id and epoch it has. Without transactions nothing is lost by giving
it a new id. Not done: transactional ids, which answer COORDINATOR_NOT_AVAILABLE until transactions exist.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.broker.errors import code_of
from headrace.core.errors import HeadraceError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


def handle(
    broker: Broker, request: InitProducerIdRequest, call: Call
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if request.transactional_id is not None:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE if request.transactional_id else ErrorCode.INVALID_REQUEST
        return _refused(code)
    if call.version >= 3 and (request.producer_id >= 0) != (request.producer_epoch >= 0):
        return _refused(ErrorCode.INVALID_REQUEST)
    return _allocate(broker)


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)


async def _allocate(broker: Broker) -> InitProducerIdResponse:
    try:
        producer_id = await broker.producer_ids.next()
    except HeadraceError as error:
        return _refused(code_of(error))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


API: Final = Api(ApiKey.INIT_PRODUCER_ID, 0, 5, InitProducerIdRequest, handle)
