"""Changes of rules: shown with `--plan`, else carried out and told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import click

from headrace.cli.acl_words import document_of
from headrace.cli.render import print_json
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.security.acl import AclRule


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


async def carry_out(cluster: Cluster, plan: Plan) -> None:
    """What is new comes first: a client that keeps a right under another rule never lacks it."""
    if plan.add:
        await acls.create_acls(cluster, plan.add)
    if plan.remove:
        await acls.delete_acls(cluster, plan.remove)


def print_plan(plan: Plan, *, is_done: bool, as_json: bool) -> None:
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
