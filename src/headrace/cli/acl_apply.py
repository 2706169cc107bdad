"""`headrace acl apply`: the rules of a file become those of the cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from headrace.cli.acl_plan import Plan, change, plan_option
from headrace.cli.acl_words import principal_of, rule_of
from headrace.cli.options import bootstrap_option, output_option
from headrace.client import acls
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.core.errors import InvalidRequest
from headrace.security.acl import WILDCARD, AclRule
from headrace.security.acl_intent import Intent, intent

_GRANT = ("principal", "grant", "topic", "group", "transactional_id", "prefix", "host")
_KINDS = ("produce", "consume", "admin")


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
        if "grant" in entry:
            found.update(_granted(entry, where))
        else:
            found.add(rule_of(entry, where))
    return found


def _granted(entry: Mapping[str, object], where: str) -> list[AclRule]:
    unknown = sorted(set(entry) - set(_GRANT))
    if unknown:
        raise ClientFailure(
            f"{where}: {unknown[0]!r} is not a field of a grant", f"it has {', '.join(_GRANT)}"
        )
    prefix, kind = entry.get("prefix", False), entry["grant"]
    texts = {name: entry.get(name) for name in _GRANT if name != "prefix"}
    if not isinstance(prefix, bool) or not all(
        each is None or isinstance(each, str) for each in texts.values()
    ):
        raise ClientFailure(f"{where}: prefix is true or false, and every other field is a text")
    if kind not in _KINDS or not texts["principal"]:
        raise ClientFailure(f"{where}: a grant needs a principal, and is one of {', '.join(_KINDS)}")
    named = cast("dict[str, str | None]", texts)
    try:
        return intent(
            cast("Intent", kind),
            principal_of(named["principal"] or ""),
            topic=named["topic"],
            group=named["group"],
            transactional_id=named["transactional_id"],
            prefixed=prefix,
            host=named["host"] or WILDCARD,
        )
    except InvalidRequest as error:
        raise ClientFailure(f"{where}: {error}") from None
