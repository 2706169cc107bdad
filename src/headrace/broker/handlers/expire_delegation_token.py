"""ExpireDelegationToken: let a token end earlier, or at once (KIP-48).

Versions 1-2. 2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.security.token_changes import change_token
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from headrace.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest, call: Call
) -> ExpireDelegationTokenResponse:
    changed = await change_token(
        context,
        call,
        request.hmac,
        lambda machine, _tokens, token_id, now_ms: machine.expire_token(
            token_id, call.principal, request.expiry_time_period_ms, now_ms
        ),
    )
    return ExpireDelegationTokenResponse(error_code=changed.error_code, expiry_timestamp_ms=changed.expiry_ms)


API: Final = Api(
    ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, ExpireDelegationTokenRequest, handle, at_controller=True
)
