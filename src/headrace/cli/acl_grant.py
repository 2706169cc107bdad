"""`headrace acl grant` and `revoke`: the whole set of rules for what a client is meant to do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

import click

from headrace.cli.acl_plan import Plan, change, plan_option
from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, bundled, output_option
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.core.errors import InvalidRequest
from headrace.security.acl import WILDCARD, AclRule, Operation
from headrace.security.acl_document import principal_of
from headrace.security.acl_filter import AclFilter
from headrace.security.acl_intent import Intent, intent

_KINDS = ("produce", "consume", "admin")


class _Words(NamedTuple):
    """What grant and revoke are told."""

    principal: str
    kind: str
    topic: str | None
    group: str | None
    transactional_id: str | None
    prefix: bool
    host: str

    @property
    def rules(self) -> list[AclRule]:
        try:
            return intent(
                cast("Intent", self.kind),
                principal_of(self.principal),
                topic=self.topic,
                group=self.group,
                transactional_id=self.transactional_id,
                prefixed=self.prefix,
                host=self.host,
            )
        except InvalidRequest as error:
            raise click.UsageError(str(error)) from None


_words_given = bundled(
    "words",
    _Words,
    _Words._fields,
    (
        click.argument("principal"),
        click.argument("kind", metavar="produce|consume|admin", type=click.Choice(_KINDS)),
        click.argument("topic", required=False, shell_complete=complete_topics),
        click.option("--group", metavar="NAME", help="For consume: its consumer group."),
        click.option("--transactional-id", metavar="ID", help="For produce with transactions."),
        click.option("--prefix", is_flag=True, help="The names are beginnings of names."),
        click.option("--host", default=WILDCARD, metavar="ADDRESS", help="Only from this address."),
    ),
)


@click.command()
@_words_given
@plan_option
@bootstrap_option
@output_option
def grant(words: _Words, plan: bool, bootstrap: str, as_json: bool) -> None:
    """Let PRINCIPAL produce to TOPIC, consume it, or administer the cluster.

    \b
    produce  write and describe the topic, and the --transactional-id
    consume  read and describe the topic, and the consumer --group
    admin    everything, with every topic and group

    A + stands before each rule that is new. Somebody who may produce does not create topics with that.
    """
    wanted = words.rules

    async def decide(cluster: Cluster) -> Plan:
        return Plan.to_have(wanted, await _rules_of(cluster, words.principal))

    change(bootstrap, decide, only_plan=plan, as_json=as_json)
    if words.kind == "consume" and words.group is None and not as_json:
        click.echo("note: members of a consumer group need --group as well", err=True)


@click.command()
@_words_given
@plan_option
@bootstrap_option
@output_option
def revoke(words: _Words, plan: bool, bootstrap: str, as_json: bool) -> None:
    """Take back what `acl grant` with the same words gave, and nothing that another grant needs.

    Other rules may still allow the same: `headrace acl explain` says so.
    """
    unwanted = words.rules

    async def decide(cluster: Cluster) -> Plan:
        present = await _rules_of(cluster, words.principal)
        return Plan.to_be_rid_of(without_shared(unwanted, present), present)

    change(bootstrap, decide, only_plan=plan, as_json=as_json)


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


async def _rules_of(cluster: Cluster, principal: str) -> list[AclRule]:
    return await acls.describe_acls(cluster, AclFilter(principal=principal_of(principal)))
