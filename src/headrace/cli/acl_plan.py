"""Changes of rules: shown with `--plan`, else carried out and told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

import click

from headrace.cli.options import with_cluster
from headrace.cli.render import print_json
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.security.acl import AclRule
from headrace.security.acl_document import document_of

plan_option = click.option("--plan", is_flag=True, help="Only show what would change.")


class Plan(NamedTuple):
    add: Sequence[AclRule]
    remove: Sequence[AclRule]
    kept: Sequence[AclRule]
    """Wanted, and there already."""

    @classmethod
    def to_have(cls, wanted: Collection[AclRule], present: Collection[AclRule]) -> Plan:
        """Everything that is present and not wanted stays."""
        there = set(present)
        asked = sorted(set(wanted))
        return cls(
            [each for each in asked if each not in there], (), [each for each in asked if each in there]
        )

    @classmethod
    def to_be_rid_of(cls, unwanted: Collection[AclRule], present: Collection[AclRule]) -> Plan:
        return cls((), sorted(set(unwanted).intersection(present)), ())

    @property
    def changes_nothing(self) -> bool:
        return not self.add and not self.remove


def change(
    bootstrap: str, decide: Callable[[Cluster], Awaitable[Plan]], *, only_plan: bool, as_json: bool
) -> None:
    """What a command that changes rules does: `decide` what is to change, carry it out, and tell it."""

    async def decide_and_do(cluster: Cluster) -> Plan:
        plan = await decide(cluster)
        if not only_plan:
            await _carry_out(cluster, plan)
        return plan

    _print(with_cluster(bootstrap, decide_and_do), is_done=not only_plan, as_json=as_json)


async def _carry_out(cluster: Cluster, plan: Plan) -> None:
    """What is new comes first: a client that keeps a right under another rule never lacks it."""
    if plan.add:
        await acls.create_acls(cluster, plan.add)
    if plan.remove:
        await acls.delete_acls(cluster, plan.remove)


def _print(plan: Plan, *, is_done: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "done": is_done,
                "add": [document_of(rule) for rule in plan.add],
                "remove": [document_of(rule) for rule in plan.remove],
                "kept": [document_of(rule) for rule in plan.kept],
            }
        )
        return
    for sign, rules in (("+", plan.add), ("-", plan.remove), (" ", plan.kept)):
        for rule in rules:
            click.echo(f"{sign} {rule}")
    if plan.changes_nothing:
        click.echo("nothing to change", err=True)
    elif is_done:
        click.echo(f"added {len(plan.add)}, removed {len(plan.remove)}", err=True)
    else:
        click.echo("nothing was changed; without --plan it is", err=True)
