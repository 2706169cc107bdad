"""`headrace acl grant` and `revoke`: the whole set of rules for what a client is meant to do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

import click

from headrace.cli.acl_plan import Plan, carry_out, print_plan
from headrace.cli.acl_words import principal_of
from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, output_option, with_cluster
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.core.errors import InvalidRequest
from headrace.security.acl import WILDCARD, AclRule, Operation
from headrace.security.acl_filter import AclFilter
from headrace.security.acl_intent import Intent, intent

F = TypeVar("F", bound=Callable[..., Any])
_KINDS = ("produce", "consume", "admin")


def _intent_options(command: F) -> F:
    for option in (
        output_option,
        bootstrap_option,
        click.option("--plan", is_flag=True, help="Only show what would change."),
        click.option("--host", default=WILDCARD, metavar="ADDRESS", help="Only from this address."),
        click.option("--prefix", is_flag=True, help="The names are beginnings of names."),
        click.option("--transactional-id", metavar="ID", help="For produce with transactions."),
        click.option("--group", metavar="NAME", help="For consume: its consumer group."),
        click.argument("topic", required=False, shell_complete=complete_topics),
        click.argument("kind", metavar="produce|consume|admin", type=click.Choice(_KINDS)),
        click.argument("principal"),
    ):
        command = option(command)
    return command


@click.command()
@_intent_options
def grant(
    principal: str,
    kind: str,
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    prefix: bool,
    host: str,
    plan: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Let PRINCIPAL produce to TOPIC, consume it, or administer the cluster.

    \b
    produce  write and describe the topic, and the --transactional-id
    consume  read and describe the topic, and the consumer --group
    admin    everything, with every topic and group

    A + stands before each rule that is new. Somebody who may produce does not create topics with that.
    """
    wanted = _rules(principal, kind, topic, group, transactional_id, prefix, host)

    async def change(cluster: Cluster) -> Plan:
        planned = Plan.to_have(wanted, await _rules_of(cluster, principal))
        if not plan:
            await carry_out(cluster, planned)
        return planned

    result = with_cluster(bootstrap, change)
    print_plan(result, is_done=not plan, as_json=as_json)
    if kind == "consume" and group is None and not as_json:
        click.echo("note: members of a consumer group need --group as well", err=True)


@click.command()
@_intent_options
def revoke(
    principal: str,
    kind: str,
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    prefix: bool,
    host: str,
    plan: bool,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Take back what `acl grant` with the same words gave, and nothing that another grant needs.

    Other rules may still allow the same: `headrace acl explain` says so.
    """
    unwanted = _rules(principal, kind, topic, group, transactional_id, prefix, host)

    async def change(cluster: Cluster) -> Plan:
        present = await _rules_of(cluster, principal)
        planned = Plan.to_be_rid_of(without_shared(unwanted, present), present)
        if not plan:
            await carry_out(cluster, planned)
        return planned

    print_plan(with_cluster(bootstrap, change), is_done=not plan, as_json=as_json)


def without_shared(unwanted: Sequence[AclRule], present: Collection[AclRule]) -> list[AclRule]:
    """DESCRIBE of a resource belongs to produce and to consume. It goes with the last of them."""
    left = set(present) - set(unwanted)
    users = (Operation.READ, Operation.WRITE)
    return [
        rule
        for rule in unwanted
        if rule.operation != Operation.DESCRIBE
        or not any(rule._replace(operation=each) in left for each in users)
    ]


def _rules(
    principal: str,
    kind: str,
    topic: str | None,
    group: str | None,
    transactional_id: str | None,
    prefix: bool,
    host: str,
) -> list[AclRule]:
    try:
        return intent(
            cast("Intent", kind),
            principal_of(principal),
            topic=topic,
            group=group,
            transactional_id=transactional_id,
            prefixed=prefix,
            host=host,
        )
    except InvalidRequest as error:
        raise click.UsageError(str(error)) from None


async def _rules_of(cluster: Cluster, principal: str) -> list[AclRule]:
    return await acls.describe_acls(cluster, AclFilter(principal=principal_of(principal)))
