"""Decides by the rules, as Kafka's StandardAuthorizer does. Super users are not its business.

Invariant: `mask`, `decide` and a loop over all rules agree, whatever was added and removed before. A removal
makes the masks anew from the rules that remain, so that it cannot weaken another rule (CVE-2024-27309).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from headrace.security.acl import (
    EVERYONE,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_patterns import PatternTable
from headrace.security.acl_rule_scope import ALL_OPERATIONS, is_wild, operations_decided


class Reason(StrEnum):
    RULE = "a rule decides"
    NO_RULE = "no rule for the resource"
    NONE_MATCHES = "none matches"
    SUPER_USER = "a super user"
    WRITES_SOME_TOPIC = "WRITE on some topic is enough"


class Decision(NamedTuple):
    allowed: bool
    rule: AclRule | None
    reason: Reason


class _HostRules:
    """The rules of one principal, pattern and host: at most one per operation and permission."""

    __slots__ = ("allowed", "denied", "rules")

    def __init__(self) -> None:
        self.rules: set[AclRule] = set()
        self.allowed = self.denied = 0

    def sum_up(self) -> None:
        self.allowed = self.denied = 0
        for rule in self.rules:
            if rule.permission == Permission.ALLOW:
                self.allowed |= operations_decided(rule)
            else:
                self.denied |= operations_decided(rule)


_ByHost = dict[str, _HostRules]


class AclIndex:
    def __init__(
        self, rules: Iterable[AclRule] = (), *, allow_everyone_if_no_acl_found: bool = False
    ) -> None:
        self.allow_everyone_if_no_acl_found = allow_everyone_if_no_acl_found
        self._rules: set[AclRule] = set()
        self._tables: dict[tuple[str, ResourceType], PatternTable[_ByHost]] = {}
        """By principal and resource type. No table, pattern or host stays without a rule."""
        self._all: dict[ResourceType, PatternTable[set[AclRule]]] = {}
        """The same rules whoever they are for: whether a resource has any."""
        for rule in rules:
            self.add(rule)

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[AclRule]:
        return iter(self._rules)

    def __contains__(self, rule: AclRule) -> bool:
        return rule in self._rules

    def add(self, rule: AclRule) -> None:
        if rule in self._rules:
            return
        self._rules.add(rule)
        table = self._tables.setdefault((rule.principal, rule.resource_type), PatternTable())
        by_host = table.obtain(rule.pattern, rule.name, dict)
        of_host = by_host.setdefault(rule.host, _HostRules())
        of_host.rules.add(rule)
        of_host.sum_up()
        self._all.setdefault(rule.resource_type, PatternTable()).obtain(rule.pattern, rule.name, set).add(
            rule
        )

    def remove(self, rule: AclRule) -> None:
        if rule not in self._rules:
            return
        self._rules.remove(rule)
        self._remove_from_table(rule)
        every = self._all[rule.resource_type]
        same_pattern = every.obtain(rule.pattern, rule.name, set)
        same_pattern.remove(rule)
        if not same_pattern:
            every.discard(rule.pattern, rule.name)

    def mask(self, principal: str, host: str, resource_type: ResourceType, name: str) -> int:
        """The bits `1 << operation` of what is allowed. The host is an address as Java writes it."""
        allowed = denied = 0
        for who in (principal, EVERYONE):
            table = self._tables.get((who, resource_type))
            if table is None:
                continue
            for by_host in table.covering(name):
                for where in (host, WILDCARD):
                    of_host = by_host.get(where)
                    if of_host is not None:
                        allowed |= of_host.allowed
                        denied |= of_host.denied
        if self.allow_everyone_if_no_acl_found and not allowed and not denied:
            return 0 if self.has_rules(resource_type, name) else ALL_OPERATIONS
        return allowed & ~denied

    def decide(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Names the rule that decides: of several, a DENY before an ALLOW, then the most specific."""
        matching = self.matching(principal, host, operation, resource_type, name)
        if matching:
            rule = min(matching, key=lambda each: _precedence(each, operation))
            return Decision(rule.permission == Permission.ALLOW, rule, Reason.RULE)
        if self.has_rules(resource_type, name):
            return Decision(False, None, Reason.NONE_MATCHES)
        return Decision(self.allow_everyone_if_no_acl_found, None, Reason.NO_RULE)

    def matching(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> set[AclRule]:
        """Every rule that allows or denies this."""
        return {
            rule
            for table in self._tables_of(principal, resource_type)
            for by_host in table.covering(name)
            for rule in _rules_for(by_host, host)
            if operations_decided(rule) >> operation & 1
        }

    def has_rules(self, resource_type: ResourceType, name: str) -> bool:
        """Whether any rule is about the resource, for whichever principal, host and operation."""
        return bool(self.rules_about(resource_type, name))

    def rules_about(self, resource_type: ResourceType, name: str) -> list[set[AclRule]]:
        """All rules about the resource, by pattern."""
        table = self._all.get(resource_type)
        return [] if table is None else table.covering(name)

    def allows_by_type(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether some resource of the type is allowed: some ALLOW is not covered by a DENY.

        `allow.everyone.if.no.acl.found` allows it unless a rule is about every resource. Kafka asks for one
        made-up name instead, so the two differ where a rule is about just that name.
        """
        if self.allow_everyone_if_no_acl_found:
            every = self._all.get(resource_type)
            if every is None or every.wild is None:
                return True
        tables = self._tables_of(principal, resource_type)
        if _denies((table.wild for table in tables), host, operation):
            return False
        for table in tables:
            for pattern, name, by_host in table:
                if any(of_host.allowed >> operation & 1 for of_host in _hosts(by_host, host)) and not any(
                    _denies(other.covering_pattern(pattern, name), host, operation) for other in tables
                ):
                    return True
        return False

    def _tables_of(self, principal: str, resource_type: ResourceType) -> list[PatternTable[_ByHost]]:
        found = (self._tables.get((who, resource_type)) for who in {principal, EVERYONE})
        return [table for table in found if table is not None]

    def _remove_from_table(self, rule: AclRule) -> None:
        key = (rule.principal, rule.resource_type)
        table = self._tables[key]
        by_host = table.obtain(rule.pattern, rule.name, dict)
        of_host = by_host[rule.host]
        of_host.rules.remove(rule)
        of_host.sum_up()
        if not of_host.rules:
            del by_host[rule.host]
        if not by_host:
            table.discard(rule.pattern, rule.name)
        if not table:
            del self._tables[key]


def _hosts(by_host: _ByHost, host: str) -> list[_HostRules]:
    return [by_host[where] for where in {host, WILDCARD} if where in by_host]


def _rules_for(by_host: _ByHost, host: str) -> Iterator[AclRule]:
    for of_host in _hosts(by_host, host):
        yield from of_host.rules


def _denies(patterns: Iterable[_ByHost | None], host: str, operation: Operation) -> bool:
    return any(
        of_host.denied >> operation & 1
        for by_host in patterns
        if by_host is not None
        for of_host in _hosts(by_host, host)
    )


def _precedence(rule: AclRule, operation: Operation) -> tuple[object, ...]:
    return (
        rule.permission != Permission.DENY,
        is_wild(rule),
        -len(rule.name),
        rule.pattern == PatternType.PREFIXED,
        rule.principal == EVERYONE,
        rule.host == WILDCARD,
        rule.operation != operation,
        rule,
    )
