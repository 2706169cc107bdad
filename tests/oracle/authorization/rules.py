"""Four states of rights, each made by the same CreateAcls on both brokers.

Names say which rules are about them: `lit` has literal rules, what begins with `pre-` prefixed ones, and what
begins with `shut` few or none; groups have `g-` before that, transactional ids `x-`.
"""

from __future__ import annotations

from typing import Any, Final

from headrace.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from headrace.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from headrace.protocol.messages.describe_acls_request import DescribeAclsRequest
from headrace.security.acl import Operation as O
from headrace.security.acl import Permission, ResourceType
from tests.oracle.authorization.person import User

T, G, C = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
X, U, D = ResourceType.TRANSACTIONAL_ID, ResourceType.USER, ResourceType.DELEGATION_TOKEN
LITERAL, PREFIXED, ANY = 3, 4, 1
Rule = AclCreation


def rule(who: str, operation: O, on: ResourceType, name: str = "kafka-cluster", **fields: object) -> Rule:
    """A name that ends with `*`, and is longer than that, is a prefix."""
    prefixed = name.endswith("*") and name != "*"
    permission = Permission.DENY if fields.pop("deny", False) else Permission.ALLOW
    return AclCreation(
        resource_type=on,
        resource_name=name[:-1] if prefixed else name,
        resource_pattern_type=PREFIXED if prefixed else LITERAL,
        principal=f"User:{who}",
        host=str(fields.pop("host", "*")),
        operation=operation,
        permission_type=permission,
    )


def rules(who: str, on: ResourceType, names: str, *operations: O, **fields: object) -> list[Rule]:
    return [rule(who, each, on, name, **fields) for name in names.split() for each in operations]


_DESCRIBE = [
    *rules("alice", T, "lit absent pre-* __consumer_offsets", O.DESCRIBE),
    *rules("alice", G, "g-lit g-pre-*", O.READ),
    *rules("alice", X, "x-lit x-pre-*", O.DESCRIBE),
    *rules("bob", T, "*", O.DESCRIBE),
    *rules("bob", G, "*", O.DESCRIBE),
    *rules("bob", X, "*", O.DESCRIBE),
    *rules("bob", C, "kafka-cluster", O.DESCRIBE),
    *rules("mallory", G, "*", O.READ),
    *rules("mallory", T, "lit", O.DESCRIBE_CONFIGS),
    *rules("mallory", C, "kafka-cluster", O.DESCRIBE_CONFIGS),
]
_MIXED = [
    *rules("alice", T, "pre-*", O.ALL),
    *rules("alice", T, "pre-shut", O.READ, deny=True),
    *rules("alice", T, "pre-b", O.DESCRIBE, deny=True),
    *rules("alice", G, "g-pre-*", O.ALL),
    *rules("alice", G, "g-pre-b", O.DESCRIBE, deny=True),
    *rules("alice", X, "x-pre-*", O.ALL),
    *rules("alice", X, "x-pre-shut", O.WRITE, deny=True),
    *rules("alice", U, "User:bob", O.CREATE_TOKENS, O.DESCRIBE_TOKENS),
    *rules("bob", T, "*", O.ALL),
    *rules("bob", T, "pre-*", O.WRITE, deny=True),
    *rules("bob", T, "shut", O.ALL, deny=True),
    *rules("bob", G, "*", O.READ),
    *rules("bob", G, "g-lit", O.READ, deny=True),
    *rules("bob", X, "*", O.WRITE),
    *rules("bob", C, "kafka-cluster", O.CREATE, O.IDEMPOTENT_WRITE),
    *rules("bob", C, "kafka-cluster", O.CLUSTER_ACTION, deny=True),
    *rules("mallory", T, "pre-*", O.WRITE, O.CREATE),
    *rules("mallory", T, "pre*", O.WRITE, deny=True),
    *rules("mallory", T, "lit", O.READ, O.ALTER_CONFIGS),
    *rules("mallory", G, "g-*", O.DELETE),
    *rules("*", T, "lit", O.DESCRIBE),
    *rules("*", T, "shut", O.WRITE, host="10.9.9.9"),
    *rules("*", T, "pre-*", O.DELETE, deny=True, host="127.0.0.1"),
    *rules("*", C, "kafka-cluster", O.DESCRIBE),
]
_ON_TOPICS = (O.READ, O.WRITE, O.CREATE, O.DELETE, O.ALTER, O.DESCRIBE, O.DESCRIBE_CONFIGS, O.ALTER_CONFIGS)
_ON_CLUSTER = (O.CREATE, O.DELETE, O.ALTER, O.DESCRIBE, O.CLUSTER_ACTION, O.DESCRIBE_CONFIGS)
_FULL = [
    *rules("alice", T, "lit pre-* shut* absent", *_ON_TOPICS),
    *rules("alice", G, "g-*", O.READ, O.DELETE, O.DESCRIBE, O.DESCRIBE_CONFIGS, O.ALTER_CONFIGS),
    *rules("alice", X, "x-*", O.WRITE, O.DESCRIBE),
    *rules("bob", T, "*", O.ALL),
    *rules("bob", G, "*", O.ALL),
    *rules("bob", X, "*", O.ALL),
    *rules("bob", U, "*", O.ALL),
    *rules("bob", D, "*", O.ALL),
    *rules("bob", C, "kafka-cluster", O.ALL),
    # Kafka asks for DELETE on the cluster, although nobody offers it there.
    *rules("mallory", C, "kafka-cluster", *_ON_CLUSTER, O.ALTER_CONFIGS, O.IDEMPOTENT_WRITE),
]
STATES: Final[dict[str, list[Rule]]] = {
    "nothing": [],
    "describe": _DESCRIBE,
    "full": _FULL,
    "mixed": _MIXED,
}
"""In this order: at the end rights are taken away, which fetch sessions must notice."""


EVERYTHING: Final[dict[str, Any]] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
"""A filter that lets every rule pass."""


def enter(state: str, admin: User) -> None:
    """Replace all rules by those of the state. The broker must know of them before anybody asks."""

    def count() -> int:
        described = admin.quietly(DescribeAclsRequest(**EVERYTHING), 3)
        return sum(len(resource.acls) for resource in described.resources)

    admin.quietly(DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERYTHING)]), 3)
    admin.wait_until(lambda: count() == 0)
    wanted = STATES[state]
    if wanted:
        admin.ask(f"{state}: rules are made", CreateAclsRequest(creations=wanted), 3)
    admin.wait_until(lambda: count() == len(wanted))
    if wanted:
        admin.ask(f"{state}: all rules", DescribeAclsRequest(**EVERYTHING), 3)
