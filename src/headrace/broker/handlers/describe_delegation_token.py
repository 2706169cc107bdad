"""DescribeDelegationToken: the tokens that the client may see, each with its HMAC (KIP-48).

Versions 1-3. 2: flexible. 3: who asked for the token (KIP-373).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.errors import code_of
from headrace.broker.requests.slices import slices
from headrace.broker.security.delegation_tokens import may_describe_token
from headrace.controller.token_image import DelegationToken
from headrace.core.errors import ClientError
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from headrace.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from headrace.security.principal import Principal

if TYPE_CHECKING:
    from headrace.broker.requests.context import RequestContext

COMPARED_AT_ONCE: Final = 50
FIRST_WITH_REQUESTER: Final = 3


async def handle(
    context: RequestContext, request: DescribeDelegationTokenRequest, call: Call
) -> DescribeDelegationTokenResponse:
    """Without a list of owners all tokens are meant, with an empty one none."""
    try:
        tokens = context.security.require_tokens(call.identity)
    except ClientError as error:
        return DescribeDelegationTokenResponse(error_code=code_of(error))
    owners = None
    if request.owners is not None:
        owners = {Principal(each.principal_type, each.principal_name) for each in request.owners}
    found: list[DescribedDelegationToken] = []
    stored = list(context.metadata.image.tokens.by_id.values())
    async for some in slices(context.runtime.turns, stored, COMPARED_AT_ONCE):
        for token in some:
            if owners is not None and owners.isdisjoint((token.owner, token.requester, *token.renewers)):
                continue
            # With an authorizer its guard leaves out what the caller may not see.
            if call.rights is not None or may_describe_token(call.principal, token):
                found.append(_described(token, tokens.secret.hmac_of(token.token_id)))
    if call.rights is None:
        forget_requesters(found, call.version)
    return DescribeDelegationTokenResponse(tokens=found)


def forget_requesters(tokens: list[DescribedDelegationToken], version: int) -> None:
    """Older versions cannot tell them. The guard needs them before."""
    if version < FIRST_WITH_REQUESTER:
        for token in tokens:
            token.token_requester_principal_type = token.token_requester_principal_name = ""


def _described(token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issue_ms,
        expiry_timestamp=token.expiry_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in token.renewers
        ],
    )


API: Final = Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, DescribeDelegationTokenRequest, handle)
