"""FindCoordinator: no group and no transaction is served yet, so every answer is COORDINATOR_NOT_AVAILABLE.

Versions 0-6. 4: several keys in one request. 6: share groups.
It is offered all the same: librdkafka takes a broker without it for one that is older than LZ4, and then
sends records that should be LZ4 without any compression, in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.api import Api, Call
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

_WHY: Final = "this broker has no groups and no transactions yet"
_BATCHED: Final = 4


def handle(broker: Broker, request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:  # noqa: ARG001 - every handler has this shape
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if call.version < _BATCHED:
        return FindCoordinatorResponse(error_code=code, error_message=_WHY, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=_WHY)
            for key in request.coordinator_keys
        ]
    )


API: Final = Api(ApiKey.FIND_COORDINATOR, 0, 6, FindCoordinatorRequest, handle)
