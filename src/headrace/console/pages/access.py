"""Access: who may do what, by principal and by resource, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from headrace.client.quota_values import BYTE_RATES
from headrace.client.quotas import USER, Quota
from headrace.client.tokens import Token
from headrace.client.users import User
from headrace.console.access.grants import COLUMNS, Grant, grants
from headrace.console.access.seen import AccessSeen, Rules, known
from headrace.console.pages.page import Listing, Page, Query, listing
from headrace.console.words import rate, size
from headrace.doctor.model import Unknown
from headrace.observe.snapshot import Snapshot
from headrace.security.acl import (
    CLUSTER_NAME,
    EVERYONE,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from headrace.security.acl_advice import lint

MOST: Final = 200


class Decided(NamedTuple):
    """What decides beside the rules."""

    mode: str
    """enforce, shadow, none, or empty where it is not known."""
    super_users: Sequence[str]
    allows_without_rules: bool


class Right(NamedTuple):
    kind: str
    name: str
    operations: Sequence[str]


class PrincipalRow(NamedTuple):
    name: str
    is_super_user: bool
    mechanisms: Sequence[str] | None
    allows: int | None
    denies: int | None
    tokens: int | None
    quotas: int | None
    denied: int | None
    """Times that it was, since brokers remember it."""


class PrincipalsView(NamedTuple):
    decided: Decided
    not_shown: Sequence[str]
    listing: Listing[PrincipalRow]
    mine: Sequence[Right] | None
    """Of the viewer; None where nobody is asked who they are."""
    more_mine: int
    principal: str


class RuleRow(NamedTuple):
    kind: str
    name: str
    """With a star behind a prefix."""
    is_prefix: bool
    allows: bool
    operations: Sequence[str]
    principal: str
    host: str


class DenialRow(NamedTuple):
    principal: str
    operation: str
    kind: str
    name: str
    host: str
    times: int
    last_ms: int


class QuotaRow(NamedTuple):
    entity: str
    values: Sequence[tuple[str, str]]


class PrincipalView(NamedTuple):
    name: str
    decided: Decided
    not_shown: Sequence[str]
    is_super_user: bool
    credentials: Sequence[tuple[str, int]]
    rules: Sequence[RuleRow]
    everyones: Sequence[RuleRow]
    tokens: Sequence[Token]
    quotas: Sequence[QuotaRow]
    denials: Sequence[DenialRow]


class ResourceRow(NamedTuple):
    kind: str
    name: str
    is_prefix: bool
    rules: Sequence[RuleRow]


class RulesView(NamedTuple):
    decided: Decided
    not_shown: Sequence[str]
    listing: Listing[ResourceRow]
    findings: Sequence[tuple[str, str, str]]
    """Problem, rule, and why it is one."""
    more_findings: int


class OthersView(NamedTuple):
    decided: Decided
    not_shown: Sequence[str]
    tokens: Sequence[Token]
    quotas: Sequence[QuotaRow]
    denials: Sequence[DenialRow]
    silent: Sequence[int]
    since_ms: int
    now_ms: int


class TopicAccessView(NamedTuple):
    name: str
    decided: Decided
    not_shown: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Grant]
    more: int
    mine: Right | None


def decided(seen: AccessSeen) -> Decided:
    if seen.rules is None:
        return Decided("none", (), True)
    if isinstance(seen.rules, Unknown):
        return Decided("", (), False)
    given = seen.rules.settings
    mode = "shadow" if given.is_shadow else "enforce"
    return Decided(mode, sorted(given.super_users), given.allow_everyone_if_no_acl_found)


def _rules_in(seen: AccessSeen) -> Sequence[AclRule]:
    return seen.rules.rules if isinstance(seen.rules, Rules) else ()


KEYS: Final = {name: attrgetter(name) for name in ("name", "allows", "denies", "tokens", "quotas", "denied")}


def principals(seen: AccessSeen, query: Query, principal: str, mine: Sequence[Right] | None) -> Page:
    allows: Counter[str] = Counter()
    denies: Counter[str] = Counter()
    for rule in _rules_in(seen):
        (allows if rule.permission == Permission.ALLOW else denies)[rule.principal] += 1
    has_rules = not isinstance(seen.rules, Unknown)
    users = {f"User:{user.name}": user for user in known(seen.users)}
    tokens = Counter(token.owner for token in known(seen.tokens))
    quotas = Counter(who for quota in known(seen.quotas) if (who := _user_of(quota)))
    denials = known_denials(seen)
    denied: Counter[str] = Counter()
    for each in denials:
        denied[each.principal] += each.times
    how = decided(seen)
    names = {*allows, *denies, *users, *tokens, *quotas, *denied, *how.super_users}
    rows = [
        PrincipalRow(
            name,
            name in how.super_users,
            None if isinstance(seen.users, Unknown) else _mechanisms(users.get(name)),
            allows[name] if has_rules else None,
            denies[name] if has_rules else None,
            None if isinstance(seen.tokens, Unknown) else tokens[name],
            None if isinstance(seen.quotas, Unknown) else quotas[name],
            None if isinstance(seen.denied, Unknown) else denied[name],
        )
        for name in names
    ]
    view = PrincipalsView(
        how,
        seen.not_shown,
        listing(rows, query, KEYS, "name", attrgetter("name")),
        None if mine is None else mine[:MOST],
        0 if mine is None else max(0, len(mine) - MOST),
        principal,
    )
    return Page("access.html", "Access", "access", view)


def _mechanisms(user: User | None) -> list[str]:
    return [] if user is None else sorted(each.value for each in user.iterations)


def _user_of(quota: Quota) -> str:
    return next((f"User:{name}" for kind, name in quota.entity if kind == USER and name is not None), "")


def known_denials(seen: AccessSeen) -> list[DenialRow]:
    """The latest first."""
    if isinstance(seen.denied, Unknown):
        return []
    rows = [
        DenialRow(
            each.access.principal,
            each.access.operation.name,
            kind_words(each.access.resource_type),
            each.access.name,
            each.host,
            each.times,
            each.last_ms,
        )
        for each in seen.denied.seen
    ]
    return sorted(rows, key=lambda row: (-row.last_ms, row))


def rights_of(seen: Snapshot, operations: Callable[[ResourceType, str], Sequence[Operation]]) -> list[Right]:
    """Of the viewer, on what they see of the cluster."""
    places = [(ResourceType.CLUSTER, CLUSTER_NAME)]
    places += [(ResourceType.TOPIC, name) for name in seen.topics]
    if not isinstance(seen.groups, Unknown):
        places += [(ResourceType.GROUP, name) for name in seen.groups]
    found = [
        Right(kind_words(kind), name, [each.name for each in operations(kind, name)]) for kind, name in places
    ]
    return [each for each in found if each.operations]


def principal(seen: AccessSeen, name: str) -> Page:
    how = decided(seen)
    rules = _rules_in(seen)
    user = next((each for each in known(seen.users) if f"User:{each.name}" == name), None)
    view = PrincipalView(
        name,
        how,
        seen.not_shown,
        name in how.super_users,
        [] if user is None else sorted((each.value, count) for each, count in user.iterations.items()),
        _rows(rule for rule in rules if rule.principal == name),
        _rows(rule for rule in rules if rule.principal == EVERYONE) if name != EVERYONE else [],
        [token for token in known(seen.tokens) if token.owner == name],
        [_quota_row(quota) for quota in known(seen.quotas) if _user_of(quota) == name],
        [row for row in known_denials(seen) if row.principal == name],
    )
    return Page("access_principal.html", name, "access", view)


def kind_words(kind: ResourceType) -> str:
    return kind.name.lower().replace("_", "-")


def _rows(rules: Iterable[AclRule]) -> list[RuleRow]:
    """Rules that differ in the operation alone are one row."""
    together: dict[AclRule, list[Operation]] = {}
    for rule in sorted(rules):
        together.setdefault(rule._replace(operation=Operation.ANY), []).append(rule.operation)
    return [
        RuleRow(
            kind_words(rule.resource_type),
            rule.name,
            rule.pattern == PatternType.PREFIXED,
            rule.permission == Permission.ALLOW,
            [each.name for each in operations],
            rule.principal,
            rule.host,
        )
        for rule, operations in together.items()
    ]


def rules(seen: AccessSeen, query: Query) -> Page:
    by_resource: dict[tuple[ResourceType, str, PatternType], list[AclRule]] = {}
    for rule in sorted(_rules_in(seen)):
        by_resource.setdefault((rule.resource_type, rule.name, rule.pattern), []).append(rule)
    rows = [
        ResourceRow(kind_words(kind), name, pattern == PatternType.PREFIXED, _rows(found))
        for (kind, name, pattern), found in by_resource.items()
    ]
    how = decided(seen)
    found = lint(_rules_in(seen), how.super_users)
    view = RulesView(
        how,
        seen.not_shown,
        listing(rows, query, {"name": lambda row: (row.kind, row.name)}, "name", attrgetter("name")),
        [(each.problem.value, str(each.rule), each.text) for each in found[:MOST]],
        max(0, len(found) - MOST),
    )
    return Page("access_rules.html", "Rules", "access", view)


def others(seen: AccessSeen) -> Page:
    """Tokens, quotas, and what was denied."""
    denied = seen.denied
    view = OthersView(
        decided(seen),
        seen.not_shown,
        known(seen.tokens)[:MOST],
        [_quota_row(quota) for quota in known(seen.quotas)],
        known_denials(seen)[:MOST],
        () if isinstance(denied, Unknown) else denied.silent,
        0 if isinstance(denied, Unknown) else denied.since_ms,
        seen.at_ms,
    )
    return Page("access_others.html", "Tokens, quotas, denials", "access", view)


def _quota_row(quota: Quota) -> QuotaRow:
    return QuotaRow(quota.words, [(key, _quota(key, value)) for key, value in sorted(quota.values.items())])


def _quota(key: str, value: float) -> str:
    if key in BYTE_RATES:
        return f"{size(value)}/s"
    return f"{value:g} %" if key == "request_percentage" else rate(value)


def topic_access(seen: AccessSeen, name: str, mine: Right | None) -> Page:
    rows = grants(seen.rules, ResourceType.TOPIC, name) if isinstance(seen.rules, Rules) else []
    view = TopicAccessView(
        name,
        decided(seen),
        [each for each in seen.not_shown if each.startswith("Rules")],
        [each.name for each in COLUMNS[ResourceType.TOPIC]],
        rows[:MOST],
        max(0, len(rows) - MOST),
        mine,
    )
    return Page("topic_access.html", f"Access to {name}", "topics", view)
