"""Kafka's decisions as a loop over all rules: what the index is compared with. It knows nothing of it."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.security.acl import AclRule, Operation, PatternType, Permission, ResourceType

IMPLYING = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}


def is_about(rule: AclRule, resource_type: ResourceType, name: str) -> bool:
    if rule.resource_type is not resource_type:
        return False
    if rule.pattern is PatternType.PREFIXED:
        return name[: len(rule.name)] == rule.name
    return rule.name == "*" or rule.name == name


def is_for(rule: AclRule, principal: str, host: str, operation: Operation) -> bool:
    if rule.principal != principal and rule.principal != "User:*":
        return False
    if rule.host != host and rule.host != "*":
        return False
    if rule.operation is operation or rule.operation is Operation.ALL:
        return True
    return rule.permission is Permission.ALLOW and rule.operation in IMPLYING.get(operation, set())


def allows(
    rules: Iterable[AclRule],
    allow_everyone: bool,
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> bool:
    about = [rule for rule in rules if is_about(rule, resource_type, name)]
    if not about:
        return allow_everyone
    permissions = {rule.permission for rule in about if is_for(rule, principal, host, operation)}
    return Permission.DENY not in permissions and Permission.ALLOW in permissions


def allows_by_type(
    rules: Iterable[AclRule],
    allow_everyone: bool,
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
) -> bool:
    of_type = [rule for rule in rules if rule.resource_type is resource_type]
    if allow_everyone and not any(is_wild(rule) for rule in of_type):
        return True
    mine = [rule for rule in of_type if is_for(rule, principal, host, operation)]
    denials = [rule for rule in mine if rule.permission is Permission.DENY]
    return any(
        not any(takes_back(denial, rule) for denial in denials)
        for rule in mine
        if rule.permission is Permission.ALLOW
    )


def is_wild(rule: AclRule) -> bool:
    return rule.pattern is PatternType.LITERAL and rule.name == "*"


def takes_back(denial: AclRule, rule: AclRule) -> bool:
    """On `*`, on the same literal, or on a prefix of the name."""
    if is_wild(denial):
        return True
    if is_wild(rule):
        return False
    if denial.pattern is PatternType.PREFIXED:
        return rule.name.startswith(denial.name)
    return rule.pattern is PatternType.LITERAL and rule.name == denial.name
