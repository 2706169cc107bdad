"""What one rule is about: operations, clients, resources. Operations are bits, `1 << operation`."""

from __future__ import annotations

from typing import Final

from headrace.security.acl import EVERYONE, WILDCARD, AclRule, Operation, PatternType, Permission

ALL_OPERATIONS: Final = sum(1 << operation for operation in Operation if operation >= Operation.ALL)

_IMPLIED: Final = {
    Operation.READ: Operation.DESCRIBE,
    Operation.WRITE: Operation.DESCRIBE,
    Operation.DELETE: Operation.DESCRIBE,
    Operation.ALTER: Operation.DESCRIBE,
    Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS,
}


def operations_named(operation: Operation) -> int:
    """ALL names each of them."""
    return ALL_OPERATIONS if operation == Operation.ALL else 1 << operation


def operations_allowed(operation: Operation) -> int:
    """With what an ALLOW of the operation implies."""
    bits = operations_named(operation)
    return bits | 1 << _IMPLIED[operation] if operation in _IMPLIED else bits


def operations_decided(rule: AclRule) -> int:
    """What the rule allows or denies. A DENY implies nothing: DENY READ leaves DESCRIBE."""
    if rule.permission == Permission.ALLOW:
        return operations_allowed(rule.operation)
    return operations_named(rule.operation)


def narrowest_pattern(name: str) -> PatternType:
    """The pattern of a rule about one resource. A literal `*` would be about all of them."""
    return PatternType.PREFIXED if name == WILDCARD else PatternType.LITERAL


def is_wild(rule: AclRule) -> bool:
    """The rule is about every resource of its type. A *prefix* `*` is about names that begin with a star."""
    return rule.name == WILDCARD and rule.pattern == PatternType.LITERAL


def covers_name(rule: AclRule, name: str) -> bool:
    if rule.pattern == PatternType.PREFIXED:
        return name.startswith(rule.name)
    return rule.name in (name, WILDCARD)


def covers_resources(wide: AclRule, narrow: AclRule) -> bool:
    """Every resource that the narrow rule is about, the wide one is about too."""
    if wide.resource_type != narrow.resource_type:
        return False
    if is_wild(wide) or is_wild(narrow):
        return is_wild(wide)
    if wide.pattern == PatternType.LITERAL:
        return wide.pattern == narrow.pattern and wide.name == narrow.name
    return narrow.name.startswith(wide.name)


def covers_clients(wide: AclRule, narrow: AclRule) -> bool:
    """Every principal and host that the narrow rule is about, the wide one is about too."""
    return wide.principal in (narrow.principal, EVERYONE) and wide.host in (narrow.host, WILDCARD)
