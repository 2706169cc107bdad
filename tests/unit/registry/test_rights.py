"""Which rights routes need: all of them have a row, and subjects belong to topics."""

from __future__ import annotations

import asyncio

import pytest
from starlette.routing import Route

from headrace.client.acls import AuthorizerSettings
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.protocol.error_codes import ErrorCode
from headrace.registry import rights
from headrace.registry.errors import RegistryError
from headrace.registry.http.app import ROUTES
from headrace.registry.http.needed_rights import NEEDED, guarded
from headrace.registry.rights import NO_LIMITS, Access, Rules, topic_of
from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.principal import user
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


class Brokers:
    """A client whose cluster answers questions about rules, or does not."""

    def __init__(self) -> None:
        self.asked = 0
        self.failure: ClientFailure | None = None

    async def describe_acls(self, _cluster: object) -> list[AclRule]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return [of_alice(Operation.READ)]

    async def authorizer_settings(self, _cluster: object) -> AuthorizerSettings:
        return AuthorizerSettings(frozenset({"User:root"}), False)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(rights, "describe_acls", made.describe_acls)
    monkeypatch.setattr(rights, "authorizer_settings", made.authorizer_settings)
    return made


def rules() -> Rules:
    return Rules(Cluster("127.0.0.1:1"))


async def test_rules_are_kept_for_some_seconds(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = rules()
    for _ in range(3):
        assert (await kept.access(user("alice"), "10.0.0.1")).may_read("orders-value")
        assert not (await kept.access(user("bob"), "10.0.0.1")).may_read("orders-value")
    assert brokers.asked == 1
    loop = asyncio.get_running_loop()
    later = loop.time() + rights.KEPT_SECONDS
    monkeypatch.setattr(loop, "time", lambda: later)
    await kept.access(user("alice"), "10.0.0.1")
    assert brokers.asked == 2


async def test_nobody_is_let_in_while_nobody_tells_the_rules(brokers: Brokers) -> None:
    kept = rules()
    brokers.failure = ClientFailure("gone")
    for _ in range(3):
        with pytest.raises(ClientFailure, match="gone"):
            await kept.access(user("root"), "10.0.0.1")
    assert brokers.asked == 1


async def test_brokers_without_an_authorizer_limit_nobody(brokers: Brokers) -> None:
    kept = rules()
    brokers.failure = Refused(ErrorCode.SECURITY_DISABLED, "no authorizer")
    assert await kept.access(user("alice"), "10.0.0.1") is NO_LIMITS


async def test_a_registry_that_may_not_read_rules_does_not_start(brokers: Brokers) -> None:
    brokers.failure = Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")
    with pytest.raises(ClientFailure, match="may not read the rules") as refused:
        await rules().open()
    assert "DESCRIBE and DESCRIBE_CONFIGS on the cluster" in refused.value.hint
