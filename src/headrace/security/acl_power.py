"""Rights with which a user can take more: over the rules, the passwords, the brokers, or as somebody else.

Whoever has one of them is an administrator, whatever else the rules say.
"""

from __future__ import annotations

from typing import Final

from headrace.security.acl import AclRule, Operation, Permission, ResourceType

_OVER_THE_CLUSTER: Final = frozenset(
    (Operation.ALL, Operation.ALTER, Operation.ALTER_CONFIGS, Operation.CLUSTER_ACTION)
)
_AS_OTHERS: Final = frozenset((Operation.ALL, Operation.CREATE_TOKENS))
_WRITING: Final = frozenset((Operation.ALL, Operation.WRITE))
_INTERNAL: Final = ("__consumer_offsets", "__transaction_state")


def power_of(rule: AclRule) -> str:
    """What it gives beyond its own resource; empty if that is nothing."""
    if rule.permission != Permission.ALLOW:
        return ""
    if rule.resource_type == ResourceType.CLUSTER and rule.operation in _OVER_THE_CLUSTER:
        return "power over the cluster, its rules or its users"
    if rule.resource_type == ResourceType.USER and rule.operation in _AS_OTHERS:
        return "tokens of others, and with them their rights"
    if rule.resource_type == ResourceType.TOPIC and rule.name in _INTERNAL and rule.operation in _WRITING:
        return "power over every group or every transaction"
    return ""
