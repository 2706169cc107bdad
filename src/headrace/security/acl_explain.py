"""Why a client may or may not do something, and the fewest changes of rules that let it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from headrace.security.acl import CLUSTER_NAME, WILDCARD, AclRule, Operation, Permission, ResourceType
from headrace.security.acl_index import AclIndex, Decision, Reason
from headrace.security.acl_rule_scope import narrowest_pattern


class Cure(NamedTuple):
    """Every rule to remove and to add: with fewer changes the answer stays no."""

    remove: tuple[AclRule, ...]
    add: tuple[AclRule, ...]


class Explanation(NamedTuple):
    verdict: Decision
    cure: Cure | None
    """None where the client is allowed already."""


def _decide(
    index: AclIndex,
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> Decision:
    """With the other right that is enough for two of them: brokers ask for either."""
    if (operation, resource_type) == (Operation.CREATE, ResourceType.TOPIC):
        of_all = index.decide(principal, host, operation, ResourceType.CLUSTER, CLUSTER_NAME)
        if of_all.allowed:
            return of_all
    found = index.decide(principal, host, operation, resource_type, name)
    if (
        not found.allowed
        and (operation, resource_type) == (Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
        and index.allows_by_type(principal, host, Operation.WRITE, ResourceType.TOPIC)
    ):
        return Decision(True, None, Reason.WRITES_SOME_TOPIC)
    return found


def explain(
    index: AclIndex,
    super_users: Collection[str],
    principal: str,
    host: str,
    operation: Operation,
    resource_type: ResourceType,
    name: str,
) -> Explanation:
    if principal in super_users:
        return Explanation(Decision(True, None, Reason.SUPER_USER), None)
    verdict = _decide(index, principal, host, operation, resource_type, name)
    if verdict.allowed:
        return Explanation(verdict, None)
    matching = index.matching(principal, host, operation, resource_type, name)
    denials = {rule for rule in matching if rule.permission == Permission.DENY}
    about = {rule for rules in index.rules_about(resource_type, name) for rule in rules}
    # Without the denials an ALLOW decides, or the default for resources that no rule is about.
    falls_to_default = index.allow_everyone_if_no_acl_found and about == denials
    is_enough = matching != denials or falls_to_default
    # From every host, as Kafka's tools write rules: a client's address is seldom what it is trusted for.
    grant = AclRule(
        resource_type, name, narrowest_pattern(name), principal, WILDCARD, operation, Permission.ALLOW
    )
    return Explanation(verdict, Cure(tuple(sorted(denials)), () if is_enough else (grant,)))
