"""ExpireDelegationToken: let a token end earlier, or at once (KIP-48).

Versions 1-2. 2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.core.errors import ClientError, RequestTimedOut
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from headrace.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: ExpireDelegationTokenRequest, call: Call
) -> ExpireDelegationTokenResponse:
    now_ms = context.runtime.clock.wall_ms()
    table = context.metadata.image.tokens
    try:
        tokens, identity = context.security.require_tokens(call.identity), call.identity
        token_id = tokens.secret.find(request.hmac, table.by_id, table.epoch)
        decision = context.controller.submit(
            lambda machine: machine.expire_token(
                token_id, identity.principal, request.expiry_time_period_ms, now_ms
            )
        )
        expiry_ms = await in_time(context.runtime, context.peers.reachability, decision)
    except (ClientError, RequestTimedOut) as error:
        return ExpireDelegationTokenResponse(error_code=code_of(error), expiry_timestamp_ms=-1)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms)


API: Final = Api(
    ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, ExpireDelegationTokenRequest, handle, at_controller=True
)
