"""Delegation tokens, as handlers see them: whether there are any, and who may ask for one."""

from __future__ import annotations

from typing import NamedTuple

from headrace.controller.security_operations import TokenLifetimes
from headrace.controller.token_image import DelegationToken
from headrace.security.errors import DelegationTokenNotAllowed, DelegationTokensDisabled
from headrace.security.principal import ANONYMOUS, Principal
from headrace.security.token_secret import TokenSecret


class Identity(NamedTuple):
    """Who sends a request. Of a forwarded one: who sent it to the broker that forwarded it."""

    principal: Principal
    token_authenticated: bool = False
    """It has proved with a delegation token who it is."""


class DelegationTokens(NamedTuple):
    """What a broker with `delegation.token.secret.key` has."""

    secret: TokenSecret
    lifetimes: TokenLifetimes = TokenLifetimes()
    expiry_check_ms: int = 3_600_000
    """`delegation.token.expiry.check.interval.ms`"""


def may_describe_token(identity: Identity, token: DelegationToken) -> bool:
    """The answer holds the token's HMAC, so whoever sees it can log in as the owner."""
    return token.may_be_renewed_by(identity.principal)


def require_tokens(tokens: DelegationTokens | None, identity: Identity) -> DelegationTokens:
    """Raises DelegationTokenNotAllowed before DelegationTokensDisabled, as Kafka answers.

    Nobody may ask who has not authenticated, which is everybody on a PLAINTEXT listener and whoever shows no
    certificate. Who came with a token may not ask either: a token could make others that outlive it.
    """
    if identity.token_authenticated or identity.principal == ANONYMOUS:
        raise DelegationTokenNotAllowed("delegation tokens are for those who have authenticated")
    if tokens is None:
        raise DelegationTokensDisabled("no key of delegation tokens is configured")
    return tokens
