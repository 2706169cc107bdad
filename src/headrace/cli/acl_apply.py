"""`headrace acl apply`: the rules of a file become those of the cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from headrace.cli.acl_plan import Plan, change, plan_option
from headrace.cli.options import bootstrap_option, output_option
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.core.errors import InvalidRequest
from headrace.security.acl import AclRule
from headrace.security.acl_document import NotARule, rules_of_entry


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--prune", is_flag=True, help="Remove every rule that is not in the file.")
@plan_option
@bootstrap_option
@output_option
def apply(file: str, prune: bool, plan: bool, bootstrap: str, as_json: bool) -> None:
    """Add the rules of FILE that are missing; with --prune also remove the others.

    FILE is JSON, - for standard input: a list of rules, as `acl list -o json` prints them, and of grants:

    \b
    [
      {"principal": "alice", "grant": "produce", "topic": "orders"},
      {"principal": "bob", "grant": "consume", "topic": "orders", "group": "readers", "prefix": true},
      {"principal": "eve", "permission": "DENY", "operation": "READ",
       "resource_type": "TOPIC", "name": "orders"}
    ]
    """
    with click.open_file(file, "rb") as source:
        wanted = rules_of(source.read(), file)

    async def decide(cluster: Cluster) -> Plan:
        present = await acls.describe_acls(cluster)
        planned = Plan.to_have(wanted, present)
        if prune:
            planned = planned._replace(remove=[rule for rule in present if rule not in wanted])
        return planned

    change(bootstrap, decide, only_plan=plan, as_json=as_json)


def rules_of(content: bytes, file: str) -> set[AclRule]:
    """Raises ClientFailure, with the place in the list."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ClientFailure(f"{Path(file).name} is not JSON: {error}") from None
    if not isinstance(document, list):
        raise ClientFailure(f"{Path(file).name} is not a list", "see `headrace acl apply --help`")
    found: set[AclRule] = set()
    for at, entry in enumerate(document, start=1):
        where = f"{Path(file).name}, entry {at}"
        if not isinstance(entry, dict):
            raise ClientFailure(f"{where}: this is neither a rule nor a grant")
        try:
            found.update(rules_of_entry(entry))
        except InvalidRequest as error:
            hint = error.fields if isinstance(error, NotARule) else ""
            raise ClientFailure(f"{where}: {error}", hint) from None
    return found
