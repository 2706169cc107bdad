"""The rules that keep producers from writing at the source, and what they would do beside that. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from headrace.client.errors import ClientFailure
from headrace.security.acl import (
    EVERYONE,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_rule_scope import covers_name


def rules_for(
    topics: Iterable[str], present: Collection[AclRule], *, everybody_may_the_rest: bool
) -> list[AclRule]:
    """What is missing so that nobody writes to these topics.

    In a cluster with allow.everyone.if.no.acl.found, a topic's first rule takes away what everybody could do
    until then, reading included. Such a topic gets a rule that gives it back, if the caller says that it is
    such a cluster: its brokers do not tell that setting.
    """
    wanted = list(topics)
    bare = [name for name in wanted if not _has_rules(name, present)]
    if bare and not everybody_may_the_rest:
        raise ClientFailure(
            f"no rule at the source is about {', '.join(bare)}: a rule that denies writing may take reading"
            " away too, from consumers and from the links",
            "--everybody-may-read is for sources with allow.everyone.if.no.acl.found=true; elsewhere give the"
            " readers a rule first, or stop the producers and leave --fence-with out",
        )
    rules = [_rule(name, Operation.WRITE, Permission.DENY) for name in wanted]
    rules += [_rule(name, Operation.ALL, Permission.ALLOW) for name in bare]
    # What gives back comes first: nobody shall lack it in between.
    return sorted((rule for rule in rules if rule not in present), key=lambda rule: -rule.permission)


def _has_rules(topic: str, present: Collection[AclRule]) -> bool:
    return any(rule.resource_type == ResourceType.TOPIC and covers_name(rule, topic) for rule in present)


def _rule(topic: str, operation: Operation, permission: Permission) -> AclRule:
    return AclRule(ResourceType.TOPIC, topic, PatternType.LITERAL, EVERYONE, WILDCARD, operation, permission)


def as_list(rule: AclRule) -> list[Any]:
    """For the state file."""
    return [value if isinstance(value, str) else int(value) for value in rule]


def from_list(values: list[Any]) -> AclRule:
    resource, name, pattern, principal, host, operation, permission = values
    return AclRule(
        ResourceType(resource),
        name,
        PatternType(pattern),
        principal,
        host,
        Operation(operation),
        Permission(permission),
    )
