"""The options of kafka-acls that say which rules are meant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple, TypeVar

import click

from headrace.cli.acl_words import ResourceName, code_of, operation_of
from headrace.cli.options import bundled
from headrace.core.errors import InvalidRequest
from headrace.security.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclRule,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check_rule,
)
from headrace.security.acl_document import principal_of
from headrace.security.acl_filter import AclFilter

F = TypeVar("F", bound=Callable[..., Any])


class Resources(NamedTuple):
    topic: tuple[str, ...]
    group: tuple[str, ...]
    transactional_id: tuple[str, ...]
    delegation_token: tuple[str, ...]
    user_principal: tuple[str, ...]
    cluster: bool

    @property
    def names(self) -> list[ResourceName]:
        return [
            *(ResourceName(ResourceType.TOPIC, name) for name in self.topic),
            *(ResourceName(ResourceType.GROUP, name) for name in self.group),
            *(ResourceName(ResourceType.TRANSACTIONAL_ID, name) for name in self.transactional_id),
            *(ResourceName(ResourceType.DELEGATION_TOKEN, name) for name in self.delegation_token),
            *(ResourceName(ResourceType.USER, principal_of(name)) for name in self.user_principal),
            *([ResourceName(ResourceType.CLUSTER, CLUSTER_NAME)] if self.cluster else []),
        ]


class Entries(NamedTuple):
    """Who, from where, and what; as kafka-acls has it, a host belongs to its kind of principal."""

    allow_principal: tuple[str, ...]
    deny_principal: tuple[str, ...]
    allow_host: tuple[str, ...]
    deny_host: tuple[str, ...]
    operation: tuple[str, ...]


resource_options = bundled(
    "resources",
    Resources,
    Resources._fields,
    (
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        *(
            click.option(name, multiple=True, metavar="NAME", help=text)
            for name, text in (
                ("--topic", "A topic, '*' for all; may be repeated."),
                ("--group", "A consumer group; may be repeated."),
                ("--transactional-id", "May be repeated."),
                ("--delegation-token", "May be repeated."),
                ("--user-principal", "A principal, for delegation tokens; may be repeated."),
            )
        ),
    ),
)
"""Gives the command `resources`."""
entry_options = bundled(
    "entries",
    Entries,
    Entries._fields,
    (
        click.option(name, multiple=True, metavar=metavar, help=text)
        for name, metavar, text in (
            ("--allow-principal", "USER", "alice is User:alice; may be repeated."),
            ("--deny-principal", "USER", "May be repeated."),
            ("--allow-host", "ADDRESS", "Of those that are allowed; any if not given."),
            ("--deny-host", "ADDRESS", "Of those that are denied; any if not given."),
            ("--operation", "NAME", "read, write, describe, ...; all if not given. May be repeated."),
        )
    ),
)
"""Gives the command `entries`."""


def pattern_option(default: str, names: list[str]) -> Callable[[F], F]:
    return click.option(
        "--resource-pattern-type",
        "pattern",
        type=click.Choice(names, case_sensitive=False),
        default=default,
        show_default=True,
        help="any compares names; match finds every rule about a resource of the name."
        if "match" in names
        else None,
    )


def rules_given(resources: Resources, entries: Entries, pattern: str) -> list[AclRule]:
    """Every combination, as kafka-acls makes them. Raises UsageError."""
    if not resources.names:
        raise click.UsageError("say what the rule is about: --topic, --group, --cluster, ...")
    if not (entries.allow_principal or entries.deny_principal):
        raise click.UsageError("say whom the rule is for: --allow-principal or --deny-principal")
    operations = [operation_of(text) for text in entries.operation or ("all",)]
    found = [
        AclRule(
            resource.type,
            resource.name,
            code_of(PatternType, pattern, "pattern type", at_least=PatternType.LITERAL),
            principal_of(principal),
            host,
            operation,
            permission,
        )
        for permission, principals, hosts in (
            (Permission.ALLOW, entries.allow_principal, entries.allow_host),
            (Permission.DENY, entries.deny_principal, entries.deny_host),
        )
        for resource, principal, host, operation in product(
            resources.names, principals, hosts or (WILDCARD,), operations
        )
    ]
    try:
        for rule in found:
            check_rule(rule)
    except InvalidRequest as error:
        raise click.UsageError(str(error)) from None
    return found


def filters_given(resources: Resources, principals: tuple[str, ...], pattern: str) -> list[AclFilter]:
    """One for each resource and principal; everything where neither is given."""
    kind = code_of(PatternType, pattern, "pattern type", at_least=PatternType.ANY)
    who: list[str | None] = [principal_of(text) for text in principals] or [None]
    what: list[tuple[ResourceType, str | None]] = [(each.type, each.name) for each in resources.names]
    return [
        AclFilter(resource_type, name, kind, principal, None, Operation.ANY, Permission.ANY)
        for (resource_type, name), principal in product(what or [(ResourceType.ANY, None)], who)
    ]
