"""Which rights routes need: all of them have a row, and subjects belong to topics."""

from __future__ import annotations

import pytest
from starlette.routing import Route

from headrace.registry.errors import RegistryError
from headrace.registry.http.app import ROUTES
from headrace.registry.http.needed_rights import NEEDED, guarded
from headrace.registry.rights import NO_LIMITS, Access, topic_of
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.rights import Authorizer


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    served = {(method, route.path) for route in ROUTES for method in route.methods or () if method != "HEAD"}
    assert served == set(NEEDED)


def test_a_route_without_a_row_is_not_served() -> None:
    async def endpoint(_request: object) -> None: ...

    with pytest.raises(KeyError):
        guarded([Route("/new", endpoint)])


@pytest.mark.parametrize(
    ("subject", "topic"),
    [
        ("orders-value", "orders"),
        ("orders-key", "orders"),
        ("orders-key-value", "orders-key"),
        ("com.acme.Order", "com.acme.Order"),
        ("-value", "-value"),
        ("orders-values", "orders-values"),
    ],
)
def test_the_topic_of_a_subject(subject: str, topic: str) -> None:
    assert topic_of(subject) == topic


def of_alice(operation: Operation, permission: Permission = Permission.ALLOW) -> AclRule:
    return AclRule(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:alice", "*", operation, permission
    )


def access(*rules: AclRule, user: str = "User:alice") -> Access:
    return Access(Authorizer(AclIndex(rules), super_users=["User:root"]).rights_of(user, "10.0.0.1"))


@pytest.mark.parametrize(
    ("operation", "reads", "writes", "alters"),
    [
        (Operation.READ, True, False, False),
        (Operation.DESCRIBE, True, False, False),
        (Operation.WRITE, True, True, False),
        (Operation.ALTER, True, False, True),
        (Operation.ALL, True, True, True),
        (Operation.CREATE, False, False, False),
    ],
)
def test_what_a_rule_allows(operation: Operation, reads: bool, writes: bool, alters: bool) -> None:
    found = access(of_alice(operation))
    assert found.may_read("orders-value") == reads
    for allowed, require in (
        (reads, found.require_read),
        (writes, found.require_write),
        (alters, found.require_alter),
    ):
        if allowed:
            require("orders-value")
        else:
            with pytest.raises(RegistryError, match=r"User:alice needs .* on topic orders") as refused:
                require("orders-value")
            assert (refused.value.status, refused.value.code) == (403, 40301)
    assert not found.may_read("salaries-value")
    with pytest.raises(RegistryError, match="on the cluster"):
        found.require_administration()


def test_read_is_enough_where_describe_is_denied() -> None:
    found = access(of_alice(Operation.READ), of_alice(Operation.DESCRIBE, Permission.DENY))
    found.require_read("orders-value")
    assert found.may_read("orders-value")


def test_super_users_and_brokers_without_rules() -> None:
    for found in (access(user="User:root"), NO_LIMITS):
        found.require_alter("orders-value")
        found.require_administration()
        assert found.may_read("anything")
