"""Whoever logs in before a broker has caught up with the metadata logs in again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.security.security import Security
from headrace.security.acl import CLUSTER_NAME, AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer

BROKERS, CLIENTS, CERTIFICATES = "BROKERS", "CLIENTS", "CERTIFICATES"


class Peer:
    def __init__(self, listener: str, rights: Any = None) -> None:
        self.listener = listener
        self.rights = rights
        self.closed = False

    def close(self) -> None:
        self.closed = True


def security(authorizer: Authorizer | None) -> Security:
    made = Security(BROKERS, authorizer=authorizer)
    made.authenticate = {BROKERS: lambda _: None, CLIENTS: lambda _: None}
    return made


def ended(made: Security, *peers: Peer) -> list[bool]:
    unchecked: Any = set(peers)
    made.end_early_logins(unchecked)
    return [peer.closed for peer in peers]


def test_passwords_of_yesterday_do_not_outlive_the_start() -> None:
    """A session that was begun with one would otherwise last as long as its connection."""
    denied: list[str] = []
    authorizer = Authorizer(
        AclIndex(), super_users=("User:broker",), on_denial=lambda principal, *_: denied.append(principal)
    )
    broker = Peer(BROKERS, authorizer.rights_of("User:broker", "h"))
    client = Peer(CLIENTS, authorizer.rights_of("User:alice", "h"))
    among_brokers = Peer(BROKERS, authorizer.rights_of("User:alice", "h"))
    half_way = Peer(BROKERS)
    by_certificate = Peer(CERTIFICATES, authorizer.rights_of("User:alice", "h"))
    assert ended(security(authorizer), broker, client, among_brokers, half_way, by_certificate) == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert denied == [], "they have not tried to be brokers"


@pytest.mark.parametrize("listener", [BROKERS, CLIENTS])
def test_without_an_authorizer_the_listener_tells_brokers_from_clients(listener: str) -> None:
    assert ended(security(None), Peer(listener)) == [listener == CLIENTS]


def test_a_rule_makes_a_broker_as_well() -> None:
    rule = AclRule(
        ResourceType.CLUSTER,
        CLUSTER_NAME,
        PatternType.LITERAL,
        "User:b",
        "*",
        Operation.CLUSTER_ACTION,
        Permission.ALLOW,
    )
    authorizer = Authorizer(AclIndex([rule]))
    assert ended(security(authorizer), Peer(BROKERS, authorizer.rights_of("User:b", "h"))) == [False]


def test_a_broker_that_opens_ends_them_first() -> None:
    from headrace.broker.requests.listening import open_to_clients

    made, client, steps = security(None), Peer(CLIENTS), list[bool]()
    network: Any = SimpleNamespace(connections={client})
    dispatcher: Any = SimpleNamespace(open_to_clients=lambda: steps.append(client.closed))
    open_to_clients(made, network, dispatcher)
    assert steps == [True]
