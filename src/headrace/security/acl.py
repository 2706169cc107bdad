"""The words of ACLs: resources, patterns, operations, permissions, and the rule that is made of them.

The numbers are Kafka's, on the wire and in stored records. A peer may send any number: one without a name is
UNKNOWN.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, Self

from headrace.core.errors import InvalidRequest

WILDCARD: Final = "*"
"""As the name of a literal resource: every resource of the type. As a host: every host."""
EVERYONE: Final = "User:*"
"""A rule for this principal is for every principal, of other types than `User` too."""
CLUSTER_NAME: Final = "kafka-cluster"


class InvalidAcl(InvalidRequest):
    """One entry of CreateAcls cannot be; the others are carried out."""


class InvalidAclRequest(InvalidAcl):
    """An entry says what only a filter may say: Kafka refuses the whole request."""


class _Code(IntEnum):
    # Enum's own hash is a Python function, and differs from an equal int's: a look-up by number would miss.
    __hash__ = int.__hash__

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) and value != 0 else None


class ResourceType(_Code):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Code):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(_Code):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(_Code):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclRule(NamedTuple):
    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        name = f"{self.name}*" if self.pattern == PatternType.PREFIXED else self.name
        return (
            f"{self.permission.name} {self.principal} {self.operation.name}"
            f" on {self.resource_type.name} {self.pattern.name}:{name} from {self.host}"
        )


_OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}


def operations_of(resource_type: ResourceType) -> tuple[Operation, ...]:
    """What a client may be told that it is authorised for, without ALL; nothing for UNKNOWN and ANY."""
    return _OPERATIONS.get(resource_type, ())


def check_rule(rule: AclRule, *, operations: bool = True) -> None:
    """Raises InvalidAcl with the reason why no such rule can be created.

    Kafka's brokers accept an operation that the resource type does not have; only its tools refuse it. One of
    these has a use: DeleteTopics asks for DELETE on the cluster. `operations=False` accepts them too.
    """
    _check_codes(rule)
    if not rule.name:
        raise InvalidAcl("the resource name is empty")
    if rule.resource_type == ResourceType.CLUSTER and rule.name != CLUSTER_NAME:
        raise InvalidAcl(f"the only name of a CLUSTER resource is {CLUSTER_NAME}")
    if ":" not in rule.principal:
        raise InvalidAcl("the principal has no type: write it like User:alice")
    if operations and rule.operation not in (Operation.ALL, *operations_of(rule.resource_type)):
        raise InvalidAcl(f"a {rule.resource_type.name} has no operation {rule.operation.name}")


def _check_codes(rule: AclRule) -> None:
    """What only a filter may say refuses the whole request, a code that nobody knows this rule alone."""
    if not all((rule.resource_type, rule.pattern, rule.operation, rule.permission)):
        raise InvalidAcl("the rule has an unknown resource type, pattern type, operation or permission")
    if rule.resource_type not in _OPERATIONS:
        raise InvalidAclRequest("a rule needs one resource type")
    if rule.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidAclRequest("the pattern type of a rule is LITERAL or PREFIXED")
    if rule.operation < Operation.ALL:
        raise InvalidAclRequest("a rule needs one operation, or ALL")
    if rule.permission not in (Permission.ALLOW, Permission.DENY):
        raise InvalidAclRequest("the permission of a rule is ALLOW or DENY")
