"""Rules beside what clients did: the least that would have allowed it, and those that nobody needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.security.acl import (
    CLUSTER_NAME,
    EVERYONE,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_patterns import PatternTable
from headrace.security.acl_rule_scope import narrowest_pattern, operations_allowed, operations_decided

_SEPARATORS: Final = ".-_"
_MERGED_TYPES: Final = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)


class Access(NamedTuple):
    """What a client asked for: a right that it used, or was denied."""

    principal: str
    operation: Operation
    resource_type: ResourceType
    name: str
    """`*` where any one resource of the type would have done."""


_Grant = tuple[str, ResourceType, frozenset[Operation]]


def suggest(uses: Iterable[Access], *, merge_from: int | None = None) -> list[AclRule]:
    """The least rules that allow these uses from every host.

    With `merge_from`, so many names or more become one prefix if one principal used them for the same
    operations and they are equal up to their last `.`, `-` or `_`. Names that nobody used fall under it too.
    """
    operations: defaultdict[tuple[str, ResourceType, str], set[Operation]] = defaultdict(set)
    for use in uses:
        operations[use.principal, use.resource_type, use.name].add(use.operation)
    names: defaultdict[_Grant, set[str]] = defaultdict(set)
    for (principal, resource_type, name), used in operations.items():
        names[principal, resource_type, _least(used)].add(name)
    return sorted(
        AclRule(resource_type, name, pattern, principal, WILDCARD, operation, Permission.ALLOW)
        for (principal, resource_type, least), used_names in names.items()
        for pattern, name in _patterns(resource_type, used_names, merge_from)
        for operation in least
    )


def without_any_one(uses: Iterable[Access]) -> list[Access]:
    """For InitProducerId WRITE on any one topic is enough, which is noted as WRITE on `*`. No rule about all
    topics is needed for it: either another use is such a WRITE, or IDEMPOTENT_WRITE on the cluster is the
    least."""
    found = list(uses)
    writers = {
        use.principal
        for use in found
        if use.operation == Operation.WRITE
        and use.resource_type == ResourceType.TOPIC
        and use.name != WILDCARD
    }
    kept = []
    for use in found:
        if use.resource_type == ResourceType.TOPIC and use.name == WILDCARD:
            if use.principal in writers:
                continue
            use = Access(use.principal, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
        kept.append(use)
    return kept


def unused(rules: Iterable[AclRule], used: Iterable[Access]) -> list[AclRule]:
    """The ALLOW rules that match none of the uses, from whichever host. A DENY is never among them."""
    tables: dict[tuple[str, ResourceType], PatternTable[set[AclRule]]] = {}
    idle = {rule for rule in rules if rule.permission == Permission.ALLOW}
    for rule in idle:
        table = tables.setdefault((rule.principal, rule.resource_type), PatternTable())
        table.obtain(rule.pattern, rule.name, set).add(rule)
    for use in set(used):
        for principal in (use.principal, EVERYONE):
            found = tables.get((principal, use.resource_type))
            if found is not None:
                for same_pattern in found.covering(use.name):
                    idle -= {rule for rule in same_pattern if operations_decided(rule) >> use.operation & 1}
    return sorted(idle)


def _least(used: set[Operation]) -> frozenset[Operation]:
    """Without the operations that another one implies."""
    return frozenset(
        operation
        for operation in used
        if not any(operations_allowed(other) >> operation & 1 for other in used - {operation})
    )


def _patterns(
    resource_type: ResourceType, names: set[str], merge_from: int | None
) -> list[tuple[PatternType, str]]:
    if merge_from is None or resource_type not in _MERGED_TYPES:
        return [(narrowest_pattern(name), name) for name in names]
    by_prefix: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        by_prefix[name[: 1 + max(name.rfind(each) for each in _SEPARATORS)]].add(name)
    found = []
    for prefix, same in by_prefix.items():
        if prefix and len(same) >= merge_from:
            found.append((PatternType.PREFIXED, prefix))
        else:
            found += [(narrowest_pattern(name), name) for name in same]
    return found
