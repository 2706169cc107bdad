"""Rules that do nothing, or more than somebody meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from headrace.security.acl import (
    CLUSTER_NAME,
    EVERYONE,
    WILDCARD,
    AclRule,
    Operation,
    Permission,
    ResourceType,
)
from headrace.security.acl_patterns import PatternTable
from headrace.security.acl_rule_scope import (
    covers_clients,
    covers_resources,
    is_wild,
    operations_decided,
    operations_named,
)
from headrace.security.hosts import java_host

USER_TYPE: Final = "User"
"""Every client's principal has this type."""


class Problem(StrEnum):
    DEAD_HOST = "dead host"
    UNTYPED_PRINCIPAL = "principal without type"
    DEAD_PRINCIPAL = "dead principal"
    NOT_A_WILDCARD = "not a wildcard"
    SUPER_USER = "of a super user"
    OUTVOTED = "allowed on the cluster"
    OPEN_TO_EVERYONE = "open to everyone"
    SHADOWED = "shadowed by a denial"
    COVERED = "covered by another rule"


class Finding(NamedTuple):
    problem: Problem
    rule: AclRule
    other: AclRule | None
    """The rule that shadows or covers this one."""
    text: str


def lint(rules: Iterable[AclRule], super_users: Collection[str] = ()) -> list[Finding]:
    """In the order of the rules. Who removes all COVERED rules changes no decision."""
    kept = sorted(set(rules))
    tables = _by_principal(kept)
    found = []
    for rule in kept:
        found += [*_alone(rule), *_principal(rule, super_users), *_beside(rule, tables)]
    return found


def _alone(rule: AclRule) -> Iterator[Finding]:
    if rule.host != WILDCARD and rule.host != _java_form(rule.host):
        yield Finding(Problem.DEAD_HOST, rule, None, _host_text(rule.host))
    if rule.name != WILDCARD and rule.name.endswith(WILDCARD):
        text = f"* at the end of a name is a character of it: write {rule.name[:-1]} as a prefix"
        yield Finding(Problem.NOT_A_WILDCARD, rule, None, text)
    if rule.permission == Permission.ALLOW and rule.principal == EVERYONE and is_wild(rule):
        text = f"everybody may {rule.operation.name} every {rule.resource_type.name}"
        yield Finding(Problem.OPEN_TO_EVERYONE, rule, None, text)


def _principal(rule: AclRule, super_users: Collection[str]) -> Iterator[Finding]:
    kind, colon, name = rule.principal.partition(":")
    if not colon:
        text = f"no client has the principal {rule.principal}: write User:{rule.principal}"
        yield Finding(Problem.UNTYPED_PRINCIPAL, rule, None, text)
    elif kind != USER_TYPE:
        text = f"no client has a principal of the type {kind}: write {USER_TYPE}:{name}"
        yield Finding(Problem.DEAD_PRINCIPAL, rule, None, text)
    elif WILDCARD in name and rule.principal != EVERYONE:
        text = f"* in a principal is a character of it: write one rule for each, or one for {EVERYONE}"
        yield Finding(Problem.NOT_A_WILDCARD, rule, None, text)
    if rule.principal in super_users:
        text = f"{rule.principal} is a super user, whom no rule concerns"
        yield Finding(Problem.SUPER_USER, rule, None, text)


def _java_form(host: str) -> str | None:
    """The address as Java writes it, which is what hosts are compared with; None for a name or a network."""
    try:
        return java_host(host)
    except ValueError:
        return None


def _host_text(host: str) -> str:
    java = _java_form(host)
    if java is not None:
        return f"no client has the address {host}: write {java}"
    return f"{host} is no address, and names and networks match no client: write one rule for each address"


_Tables = dict[tuple[str, ResourceType], PatternTable[list[AclRule]]]


def _by_principal(rules: list[AclRule]) -> _Tables:
    tables: _Tables = {}
    for rule in rules:
        table = tables.setdefault((rule.principal, rule.resource_type), PatternTable())
        table.obtain(rule.pattern, rule.name, list).append(rule)
    return tables


def _beside(rule: AclRule, tables: _Tables) -> Iterator[Finding]:
    wider = [other for other in _wider(rule, tables) if other != rule]
    denials = [other for other in wider if other.permission == Permission.DENY]
    if rule.permission == Permission.ALLOW:
        yield from _shadowed(rule, denials)
    elif rule.resource_type == ResourceType.TOPIC and rule.operation == Operation.CREATE:
        yield from _outvoted(rule, tables)
    decided = operations_decided(rule)
    for other in wider:
        if other.permission == rule.permission and decided & ~operations_decided(other) == 0:
            yield Finding(Problem.COVERED, rule, other, f"it changes nothing beside: {other}")
            return


def _outvoted(rule: AclRule, tables: _Tables) -> Iterator[Finding]:
    """Who may CREATE on the cluster may create every topic, whatever is denied for one of them."""
    for principal in sorted({rule.principal, EVERYONE}):
        table = tables.get((principal, ResourceType.CLUSTER))
        for others in [] if table is None else table.covering(CLUSTER_NAME):
            for other in others:
                allows = (
                    other.permission == Permission.ALLOW and operations_decided(other) >> rule.operation & 1
                )
                if allows:
                    yield Finding(Problem.OUTVOTED, rule, other, f"it denies nothing beside: {other}")
                    return


def _wider(rule: AclRule, tables: _Tables) -> Iterator[AclRule]:
    """The rules for at least the same clients and resources, the rule itself among them."""
    for principal in sorted({rule.principal, EVERYONE}):
        table = tables.get((principal, rule.resource_type))
        if table is not None:
            for others in table.covering_pattern(rule.pattern, rule.name):
                yield from (
                    other for other in others if covers_clients(other, rule) and covers_resources(other, rule)
                )


def _shadowed(rule: AclRule, denials: list[AclRule]) -> Iterator[Finding]:
    denied = 0
    for other in denials:
        denied |= operations_decided(other)
    named = operations_named(rule.operation)
    if named & ~denied:
        return
    other = next(each for each in denials if operations_decided(each) & named)
    left = operations_decided(rule) & ~denied
    names = ", ".join(operation.name for operation in Operation if left >> operation & 1)
    text = f"denied by: {other}" + (f"; it still allows {names}" if left else "")
    yield Finding(Problem.SHADOWED, rule, other, text)
