"""`headrace acl`: who may do what. Here are the rules one by one; the other commands are beside."""

from __future__ import annotations

import click

from headrace.cli.acl_options import (
    Entries,
    Resources,
    entry_options,
    filters_given,
    pattern_option,
    resource_options,
    rules_given,
)
from headrace.cli.acl_plan import Plan, change, plan_option
from headrace.cli.acl_words import COLUMNS, row_of
from headrace.cli.lazy_group import LazyGroup
from headrace.cli.options import bootstrap_option, output_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.security.acl import AclRule
from headrace.security.acl_document import document_of
from headrace.security.acl_filter import AclFilter

_ELSEWHERE = {
    "grant": ("headrace.cli.acl_grant:grant", "Let a user produce, consume or administer."),
    "revoke": ("headrace.cli.acl_grant:revoke", "Take back what grant gave."),
    "explain": ("headrace.cli.acl_explain:explain", "Say why somebody may or may not do something."),
    "lint": ("headrace.cli.acl_explain:lint", "Find rules that do not do what they seem to."),
    "shadow": ("headrace.cli.acl_shadow:shadow", "List what the rules deny of what clients did."),
    "suggest": ("headrace.cli.acl_shadow:suggest", "Print the least rules for what a user did."),
    "apply": ("headrace.cli.acl_apply:apply", "Make the rules those of a file."),
}
_principal_option = click.option(
    "--principal", multiple=True, metavar="USER", help="alice is User:alice; may be repeated."
)


@click.group(cls=LazyGroup, lazy=_ELSEWHERE)
def acl() -> None:
    """Grant and revoke rights, explain and check them, try them in shadow mode."""


@acl.command("list")
@_principal_option
@resource_options
@pattern_option("any", ["any", "match", "literal", "prefixed"])
@bootstrap_option
@output_option
def list_(
    principal: tuple[str, ...],
    resources: Resources,
    pattern: str,
    bootstrap: str,
    as_json: bool,
) -> None:
    """List rules. `acl apply` takes what -o json prints.

    --topic orders --resource-pattern-type match lists every rule about that topic, also those for prefixes
    of its name and for all topics.
    """
    wanted = filters_given(resources, principal, pattern)
    found = with_cluster(bootstrap, lambda client: _matching(client, wanted))
    if as_json:
        print_json([document_of(rule) for rule in found])
        return
    rows = [row_of(rule) for rule in sorted(found, key=lambda rule: (rule.principal, rule))]
    print_table(COLUMNS, rows, empty="no rules like that: `headrace acl grant USER produce TOPIC` makes some")


@acl.command()
@entry_options
@resource_options
@pattern_option("literal", ["literal", "prefixed"])
@plan_option
@bootstrap_option
@output_option
def add(
    entries: Entries,
    resources: Resources,
    pattern: str,
    plan: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Add rules one by one, with the options of kafka-acls. (Whole sets: `headrace acl grant`.)"""
    rules = rules_given(resources, entries, pattern)

    async def decide(client: Cluster) -> Plan:
        return Plan.to_have(rules, await acls.describe_acls(client))

    change(bootstrap, decide, only_plan=plan, as_json=as_json)


@acl.command()
@_principal_option
@entry_options
@resource_options
@pattern_option("literal", ["any", "match", "literal", "prefixed"])
@plan_option
@bootstrap_option
@output_option
def remove(
    principal: tuple[str, ...],
    entries: Entries,
    resources: Resources,
    pattern: str,
    plan: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Remove rules: exactly those that `acl add` with the same options would add.

    Without --allow-principal and --deny-principal every rule of the resources goes; with --principal every
    rule of the user, of those resources if some are named.
    """
    unwanted = _removal(resources, entries, principal, pattern)

    async def decide(client: Cluster) -> Plan:
        return Plan((), await _matching(client, unwanted), ())

    change(bootstrap, decide, only_plan=plan, as_json=as_json)


def _removal(
    resources: Resources, entries: Entries, principals: tuple[str, ...], pattern: str
) -> list[AclFilter]:
    if entries.allow_principal or entries.deny_principal:
        if principals:
            raise click.UsageError("--principal is for every rule of a user: leave the other principals out")
        if pattern.lower() in ("any", "match"):
            raise click.UsageError(
                "with --allow-principal or --deny-principal the pattern is literal or prefixed"
            )
        return [AclFilter(*rule) for rule in rules_given(resources, entries, pattern)]
    if any(entries):
        raise click.UsageError("hosts and operations need --allow-principal or --deny-principal")
    if not resources.names and not principals:
        raise click.UsageError("say which rules: --principal, --allow-principal, --topic, --group, ...")
    # Every rule of a user, whatever its pattern, unless a resource is named.
    return filters_given(resources, principals, pattern if resources.names else "any")


async def _matching(client: Cluster, filters: list[AclFilter]) -> list[AclRule]:
    found: set[AclRule] = set()
    for wanted in filters:
        found.update(await acls.describe_acls(client, wanted))
    return sorted(found)
