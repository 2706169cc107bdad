"""Delegation tokens: everybody may have one, and see its own. Rights are needed for those of others.

Renewing and expiring need no right: the handler compares the principal with the token's owner and renewers.
"""

from __future__ import annotations

from headrace.broker.authorization.division import keep
from headrace.broker.authorization.guard import ALLOWED, Partly, Verdict
from headrace.broker.handlers.describe_delegation_token import forget_requesters
from headrace.broker.requests.api import Call
from headrace.broker.requests.context import RequestContext
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from headrace.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from headrace.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from headrace.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from headrace.security.acl import Operation, ResourceType
from headrace.security.principal import Principal
from headrace.security.rights import Rights

_NEVER = -1
"""The times of a token that was not made."""


def create_delegation_token(
    _context: RequestContext, rights: Rights, request: CreateDelegationTokenRequest, call: Call
) -> Verdict:
    """For another owner: CREATE_TOKENS on that user. Who may not ask at all hears that, from the handler."""
    if not request.owner_principal_name or not call.identity.may_ask_for_tokens:
        return ALLOWED
    owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    if owner == call.principal or rights.enforces(
        Operation.CREATE_TOKENS, ResourceType.USER, _resource(owner)
    ):
        return ALLOWED
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=call.principal.type if call.version >= 3 else "",
        token_requester_principal_name=call.principal.name if call.version >= 3 else "",
        issue_timestamp_ms=_NEVER,
        expiry_timestamp_ms=_NEVER,
        max_timestamp_ms=_NEVER,
    )


def _resource(owner: Principal) -> str:
    """The name of a USER resource."""
    return f"{owner.type}:{owner.name}"


def describe_delegation_token(
    context: RequestContext, rights: Rights, request: DescribeDelegationTokenRequest, call: Call
) -> Verdict:
    """The handler shows all of them, and this leaves out what the caller may not see."""

    async def leave_out(response: DescribeDelegationTokenResponse) -> DescribeDelegationTokenResponse:
        response.tokens = await keep(
            context, response.tokens, lambda token: _may_see(rights, call.principal, token)
        )
        forget_requesters(response.tokens, call.version)
        return response

    return Partly(request, leave_out)


def _may_see(rights: Rights, principal: Principal, token: DescribedDelegationToken) -> bool:
    """Its owner, requester and renewers; else DESCRIBE on the token, or DESCRIBE_TOKENS on its owner."""
    owner = Principal(token.principal_type, token.principal_name)
    requester = Principal(token.token_requester_principal_type, token.token_requester_principal_name)
    renewers = [Principal(each.principal_type, each.principal_name) for each in token.renewers]
    return (
        principal in (owner, requester, *renewers)
        or rights.is_granted(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or rights.is_granted(Operation.DESCRIBE_TOKENS, ResourceType.USER, _resource(owner))
    )
