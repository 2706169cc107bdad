"""CreateDelegationToken: a password of limited life for somebody who has authenticated (KIP-48).

Versions 1-3. 2: flexible. 3: a token for another user (KIP-373).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.cluster.decision_timeouts import in_time
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.controller.security_operations import NewToken
from headrace.core.errors import ClientError, RequestTimedOut
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.security.principal import Principal

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

FIRST_WITH_REQUESTER: Final = 3
"""The version that tells who asked: it may be another than the owner."""


async def handle(
    context: RequestContext, request: CreateDelegationTokenRequest, call: Call
) -> CreateDelegationTokenResponse:
    requester = call.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    answer = CreateDelegationTokenResponse(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type if call.version >= FIRST_WITH_REQUESTER else "",
        token_requester_principal_name=requester.name if call.version >= FIRST_WITH_REQUESTER else "",
        issue_timestamp_ms=-1,
        expiry_timestamp_ms=-1,
        max_timestamp_ms=-1,
    )
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    new = NewToken(requester, owner, renewers, request.max_lifetime_ms)
    now_ms = context.runtime.clock.wall_ms()
    try:
        tokens = context.security.require_tokens(call.identity)
        decision = context.controller.submit(
            lambda machine: machine.create_token(new, tokens.lifetimes, now_ms)
        )
        token = await in_time(context.runtime, context.peers.reachability, decision)
    except (ClientError, RequestTimedOut) as error:
        answer.error_code = code_of(error)
        return answer
    answer.issue_timestamp_ms = token.issue_ms
    answer.expiry_timestamp_ms = token.expiry_ms
    answer.max_timestamp_ms = token.max_ms
    answer.token_id = token.token_id
    answer.hmac = tokens.secret.hmac_of(token.token_id)
    return answer


API: Final = Api(
    ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, CreateDelegationTokenRequest, handle, at_controller=True
)
