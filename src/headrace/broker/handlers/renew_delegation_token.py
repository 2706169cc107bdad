"""RenewDelegationToken: let a token live on, up to the end that it was created with (KIP-48).

Versions 1-2. 2: flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.security.token_changes import change_token
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from headrace.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext


async def handle(
    context: RequestContext, request: RenewDelegationTokenRequest, call: Call
) -> RenewDelegationTokenResponse:
    changed = await change_token(
        context,
        call,
        request.hmac,
        lambda machine, tokens, token_id, now_ms: machine.renew_token(
            token_id, call.principal, request.renew_period_ms, tokens.lifetimes, now_ms
        ),
    )
    return RenewDelegationTokenResponse(error_code=changed.error_code, expiry_timestamp_ms=changed.expiry_ms)


API: Final = Api(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, RenewDelegationTokenRequest, handle, at_controller=True)
