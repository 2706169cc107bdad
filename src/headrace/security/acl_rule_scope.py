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


def operations_named(rule: AclRule) -> int:
    """The operation that the rule names. ALL names each of them."""
    return ALL_OPERATIONS if rule.operation == Operation.ALL else 1 << rule.operation


def operations_decided(rule: AclRule) -> int:
    """What the rule allows or denies. Only an ALLOW implies further operations: DENY READ leaves DESCRIBE."""
    bits = operations_named(rule)
    if rule.permission == Permission.ALLOW and rule.operation in _IMPLIED:
        bits |= 1 << _IMPLIED[rule.operation]
    return bits


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


def is_for_client(rule: AclRule, principal: str, host: str) -> bool:
    return rule.principal in (principal, EVERYONE) and rule.host in (host, WILDCARD)
