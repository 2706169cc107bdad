"""Who may do what, as the brokers tell it: rules, users, tokens, quotas, and what was denied lately.

A part that could not be had, or that a viewer may not see, is an Unknown with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

from headrace.client.access import Seen
from headrace.client.acls import AuthorizerSettings
from headrace.client.quotas import Quota
from headrace.client.tokens import Token
from headrace.client.users import User
from headrace.doctor.model import Unknown
from headrace.security.acl import CLUSTER_NAME, AclRule, Operation, ResourceType
from headrace.security.acl_index import AclIndex

T = TypeVar("T")
May = Callable[[Operation, ResourceType, str], bool]


class Rules:
    """All of them together, with what decides beside them."""

    def __init__(self, rules: Sequence[AclRule], settings: AuthorizerSettings) -> None:
        self.rules = rules
        self.settings = settings

    @cached_property
    def index(self) -> AclIndex:
        default = self.settings.allow_everyone_if_no_acl_found
        return AclIndex(self.rules, allow_everyone_if_no_acl_found=default)


class Denials(NamedTuple):
    seen: Sequence[Seen]
    since_ms: int
    """Since when every one of these brokers remembers."""
    silent: Sequence[int]


class AccessSeen(NamedTuple):
    at_ms: int
    rules: Rules | Unknown | None
    """None: there is no authorizer, so everybody may do everything."""
    users: Sequence[User] | Unknown
    tokens: Sequence[Token] | Unknown
    quotas: Sequence[Quota] | Unknown
    denied: Denials | Unknown

    def limited(self, may: May, principal: str) -> AccessSeen:
        """To what the brokers would tell this viewer, who may ask them the same."""
        describes = may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        reads_settings = may(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
        tokens = self.tokens
        if not isinstance(tokens, Unknown):
            tokens = [each for each in tokens if _may_see(may, principal, each)]
        return self._replace(
            rules=self.rules if describes or self.rules is None else _LACKS_DESCRIBE,
            users=self.users if describes else _LACKS_DESCRIBE,
            tokens=tokens,
            quotas=self.quotas if reads_settings else _LACKS_DESCRIBE_CONFIGS,
            denied=self.denied if describes and reads_settings else _LACKS_BOTH,
        )

    @property
    def not_shown(self) -> list[str]:
        """In sentences, why something is missing."""
        parts: Sequence[tuple[str, object]] = (
            ("Rules are", self.rules),
            ("Users with passwords are", self.users),
            ("Tokens are", self.tokens),
            ("Quotas are", self.quotas),
            ("What was denied is", self.denied),
        )
        return [f"{name} not shown: {part.reason}." for name, part in parts if isinstance(part, Unknown)]


_LACKS_DESCRIBE: Final = Unknown("to see them takes DESCRIBE on the cluster")
_LACKS_DESCRIBE_CONFIGS: Final = Unknown("to see them takes DESCRIBE_CONFIGS on the cluster")
_LACKS_BOTH: Final = Unknown("to see it takes DESCRIBE and DESCRIBE_CONFIGS on the cluster")


def _may_see(may: May, principal: str, token: Token) -> bool:
    """As brokers decide it."""
    return (
        principal in (token.owner, token.requester, *token.renewers)
        or may(Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or may(Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def known(part: Sequence[T] | Unknown) -> Sequence[T]:
    """For pages that say elsewhere what is not known."""
    return () if isinstance(part, Unknown) else part
