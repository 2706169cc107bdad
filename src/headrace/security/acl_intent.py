"""The whole set of rules that a client needs for what it is meant to do."""

from __future__ import annotations

from typing import Literal

from headrace.core.errors import InvalidRequest
from headrace.security.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_rule,
)

Intent = Literal["produce", "consume", "admin"]


def intent(
    kind: Intent,
    principal: str,
    *,
    topic: str | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    prefixed: bool = False,
    host: str = WILDCARD,
) -> list[AclRule]:
    """Raises InvalidRequest for a name that the intent lacks or has no use for.

    A producer does not get CREATE: it would create a topic by mistyping a name. `prefixed` is for all names.
    """
    _check_names(kind, topic, group, transactional_id, prefixed)
    if kind == "admin":
        wanted = [
            (ResourceType.CLUSTER, CLUSTER_NAME, Operation.ALL),
            (ResourceType.TOPIC, WILDCARD, Operation.ALL),
            (ResourceType.GROUP, WILDCARD, Operation.ALL),
        ]
    else:
        first = Operation.WRITE if kind == "produce" else Operation.READ
        names = (
            (ResourceType.TOPIC, topic),
            (ResourceType.GROUP, group),
            (ResourceType.TRANSACTIONAL_ID, transactional_id),
        )
        wanted = [
            (resource_type, name, operation)
            for resource_type, name in names
            if name is not None
            for operation in (first, Operation.DESCRIBE)
        ]
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    rules = [
        AclRule(resource_type, name, pattern, principal, host, operation, Permission.ALLOW)
        for resource_type, name, operation in wanted
    ]
    for rule in rules:
        check_rule(rule)
    return rules


def _check_names(
    kind: Intent, topic: str | None, group: str | None, transactional_id: str | None, prefixed: bool
) -> None:
    if kind == "admin":
        if prefixed or (topic, group, transactional_id) != (None, None, None):
            raise InvalidRequest("admin is for every topic and group: it takes no names")
        return
    if topic is None:
        raise InvalidRequest(f"{kind} needs a topic")
    if kind == "produce" and group is not None:
        raise InvalidRequest("produce needs no group: grant consume for it")
    if kind == "consume" and transactional_id is not None:
        raise InvalidRequest("consume needs no transactional id: grant produce for it")
    if prefixed and WILDCARD in (topic, group, transactional_id):
        raise InvalidRequest("a prefix * is for names that begin with a star: leave prefixed out")
