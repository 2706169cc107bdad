"""Delegation tokens, as handlers see them: whether there are any, and who may ask for one."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.config.broker import BrokerConfig
from headrace.controller.security_operations import TokenLifetimes
from headrace.controller.token_image import DelegationToken
from headrace.security.errors import DelegationTokenNotAllowed, DelegationTokensDisabled
from headrace.security.principal import ANONYMOUS, Principal
from headrace.security.token_secret import TokenSecret

_LONGEST_MS: Final = 2**62
"""What is longer would end after the last moment that a record can name."""


class Identity(NamedTuple):
    """Who sends a request. Of a forwarded one: who sent it to the broker that forwarded it."""

    principal: Principal
    token_authenticated: bool = False
    """It has proved with a delegation token who it is."""

    @property
    def may_ask_for_tokens(self) -> bool:
        """Nobody may who has not authenticated, which is everybody on a PLAINTEXT listener and whoever shows
        no certificate. Who came with a token may not either: a token could make others that outlive it.
        """
        return not self.token_authenticated and self.principal != ANONYMOUS


class DelegationTokens(NamedTuple):
    """What a broker with `delegation.token.secret.key` has."""

    secret: TokenSecret
    lifetimes: TokenLifetimes = TokenLifetimes()
    expiry_check_ms: int = 3_600_000
    """`delegation.token.expiry.check.interval.ms`"""


def tokens_of(config: BrokerConfig) -> DelegationTokens | None:
    key = config.delegation_token_secret_key
    if not key:
        return None
    return DelegationTokens(
        TokenSecret(key.reveal().encode()),
        TokenLifetimes(
            min(config.delegation_token_max_lifetime_ms, _LONGEST_MS),
            min(config.delegation_token_expiry_time_ms, _LONGEST_MS),
        ),
        config.delegation_token_expiry_check_interval_ms,
    )


def may_describe_token(principal: Principal, token: DelegationToken) -> bool:
    """Where there is no authorizer. The answer holds the token's HMAC, so whoever sees it can log in as the
    owner: unlike in Kafka, it is shown to no others.
    """
    return principal in (token.owner, token.requester, *token.renewers)


def require_tokens(tokens: DelegationTokens | None, identity: Identity) -> DelegationTokens:
    """Raises DelegationTokenNotAllowed before DelegationTokensDisabled, as Kafka answers."""
    if not identity.may_ask_for_tokens:
        raise DelegationTokenNotAllowed("delegation tokens are for those who have authenticated")
    if tokens is None:
        raise DelegationTokensDisabled("no key of delegation tokens is configured")
    return tokens
