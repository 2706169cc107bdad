"""A broker in which everybody is whom a test says, and may do nearly everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from headrace.broker import assembly
from headrace.broker.security.delegation_tokens import DelegationTokens
from headrace.broker.security.security import Security
from headrace.security.acl import (
    CLUSTER_NAME,
    EVERYONE,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_index import AclIndex
from headrace.security.principal import Principal, user
from headrace.security.rights import Authorizer
from headrace.security.token_secret import TokenSecret

if TYPE_CHECKING:
    from headrace.network.connection import Connection

ALICE = user("alice")


class ClaimedPrincipals(Security):
    who: Callable[[], Principal] = staticmethod(lambda: ALICE)

    def on_connected(self, connection: Connection) -> None:
        connection.principal = self.who()
        super().on_connected(connection)


def believe(
    monkeypatch: pytest.MonkeyPatch, who: Callable[[], Principal] = lambda: ALICE
) -> ClaimedPrincipals:
    """Of brokers that start in this process. Tokens of others stay theirs: no rule is about tokens."""
    rules = [
        AclRule(kind, name, PatternType.LITERAL, EVERYONE, WILDCARD, Operation.ALL, Permission.ALLOW)
        for kind, name in (
            (ResourceType.CLUSTER, CLUSTER_NAME),
            (ResourceType.TOPIC, WILDCARD),
            (ResourceType.GROUP, WILDCARD),
        )
    ]
    security = ClaimedPrincipals(
        "PLAINTEXT",
        authorizer=Authorizer(AclIndex(rules)),
        tokens=DelegationTokens(TokenSecret(b"a key of all brokers")),
    )
    security.who = who
    monkeypatch.setattr(assembly, "make_security", lambda *_: (security, None))
    return security
