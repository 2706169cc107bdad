"""Who may do what on one resource: by the rules, for every principal that they name, whatever its address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.console.access.seen import Rules
from headrace.security.acl import CLUSTER_NAME, EVERYONE, WILDCARD, Operation, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.acl_rule_scope import operations_decided

COLUMNS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DESCRIBE, Operation.DELETE),
}


class May(NamedTuple):
    """One operation of one principal."""

    allowed: bool
    """From addresses that no rule names."""
    denied: bool
    """A rule says no, which no other rule can change."""
    unlike: Sequence[str] = ()
    """Addresses from which it is the other way round."""


class Grant(NamedTuple):
    principal: str
    """`User:*`: all whom no rule names."""
    may: Sequence[May]
    """By the columns of the resource's type."""


def grants(rules: Rules, kind: ResourceType, name: str) -> list[Grant]:
    """Of those who may anything, or are denied something. Super users are told of elsewhere: no rule is about
    them."""
    index = rules.index
    about = {rule for found in index.rules_about(kind, name) for rule in found}
    if (kind, Operation.DELETE) in _ALSO_ON_CLUSTER:
        about |= {
            rule
            for found in index.rules_about(ResourceType.CLUSTER, CLUSTER_NAME)
            for rule in found
            if operations_decided(rule) >> Operation.DELETE & 1
        }
    hosts = {
        who: sorted({rule.host for rule in about if rule.principal in (who, EVERYONE)} - {WILDCARD})
        for who in {EVERYONE, *(rule.principal for rule in about)} - rules.settings.super_users
    }
    denying = {rule for rule in about if rule.permission == Permission.DENY}
    found = []
    for who in sorted(hosts, key=lambda each: (each == EVERYONE, each)):
        cells = [_may(index, who, hosts[who], operation, kind, name) for operation in COLUMNS[kind]]
        is_denied = any(rule.principal == who for rule in denying)
        if is_denied or any(cell.allowed or cell.unlike for cell in cells):
            found.append(Grant(who, cells))
    return found


_ALSO_ON_CLUSTER: Final = frozenset(((ResourceType.TOPIC, Operation.DELETE),))
"""Brokers ask for the right on the cluster too, and either is enough."""


def _may(
    index: AclIndex, who: str, hosts: Sequence[str], operation: Operation, kind: ResourceType, name: str
) -> May:
    def allows(host: str) -> bool:
        if index.mask(who, host, kind, name) >> operation & 1:
            return True
        on_cluster = (kind, operation) in _ALSO_ON_CLUSTER
        return on_cluster and bool(index.mask(who, host, ResourceType.CLUSTER, CLUSTER_NAME) >> operation & 1)

    allowed = allows(WILDCARD)
    matching = index.matching(who, WILDCARD, operation, kind, name)
    return May(
        allowed,
        not allowed and any(rule.permission == Permission.DENY for rule in matching),
        tuple(host for host in hosts if allows(host) != allowed),
    )
