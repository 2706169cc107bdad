"""Delegation tokens, over the wire (KIP-48): those that one may see, without what logs in with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headrace.client.cluster import Cluster
from headrace.client.refusals import refusal
from headrace.protocol.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from headrace.protocol.messages.describe_delegation_token_response import DescribeDelegationTokenResponse


class Token(NamedTuple):
    token_id: str
    owner: str
    requester: str
    """Empty where the broker is too old to say."""
    renewers: Sequence[str]
    issued_ms: int
    expires_ms: int
    last_ms: int
    """Until then it can be renewed."""


async def list_tokens(cluster: Cluster) -> list[Token]:
    """The HMAC, which is the token's password, goes no further than this function."""
    reply = await cluster.retried(
        lambda: cluster.ask_controller(
            DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse
        )
    )
    if reply.error_code:
        raise refusal(reply.error_code, "delegation tokens")
    return sorted(
        Token(
            each.token_id,
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}"
            if each.token_requester_principal_name
            else "",
            tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
        )
        for each in reply.tokens
    )
