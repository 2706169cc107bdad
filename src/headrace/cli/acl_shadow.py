"""`headrace acl shadow` and `suggest`: what clients did, as all brokers remember it, beside the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import click

from headrace.cli.acl_words import ResourceName
from headrace.cli.lazy_group import FAILED
from headrace.cli.options import bootstrap_option, output_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client import acls
from headrace.client.access import ClusterAccess, Seen, cluster_access
from headrace.client.acl_commands import command_of
from headrace.client.acls import AuthorizerSettings
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.client.moments import utc
from headrace.config.security_report import NO_AUTHORIZER
from headrace.security.acl import WILDCARD, AclRule, PatternType, ResourceType
from headrace.security.acl_advice import Access, unused, without_any_one
from headrace.security.acl_advice import suggest as suggested
from headrace.security.acl_document import document_of, principal_of
from headrace.security.acl_index import AclIndex
from headrace.security.acl_power import power_of

_COLUMNS = ("PRINCIPAL", "OPERATION", "RESOURCE", "HOST", "COUNT", "LAST")


class _Known(NamedTuple):
    access: ClusterAccess
    rules: list[AclRule]
    settings: AuthorizerSettings

    @property
    def is_whole(self) -> bool:
        return not self.access.silent

    def may(self) -> Callable[[Access, str], bool]:
        """Whether the rules of now allow it from a host; `*` counts only rules for every host."""
        index = AclIndex(
            self.rules, allow_everyone_if_no_acl_found=self.settings.allow_everyone_if_no_acl_found
        )

        def may(access: Access, host: str) -> bool:
            principal, operation, resource_type, name = access
            if principal in self.settings.super_users:
                return True
            if _is_any(access):
                return index.allows_by_type(principal, host, operation, resource_type)
            return index.decide(principal, host, operation, resource_type, name).allowed

        return may


@click.command()
@click.argument("user", required=False)
@click.option("--all", "every", is_flag=True, help="Also what the rules allow by now.")
@bootstrap_option
@output_option
def shadow(user: str | None, every: bool, bootstrap: str, as_json: bool) -> int:
    """List what the rules deny of what clients did, of all or of USER.

    Brokers with headrace.authorizer.mode=shadow deny only changes of rules, passwords and tokens of others,
    and remember what else they would deny, each since its start. Every broker is asked. What the rules allow
    by now is left out, so that the list becomes empty as rules are added. Brokers that enforce remember in
    the same way what they denied.

    The exit code is 0 if the list is empty and every broker has answered, else 1.
    """
    known = with_cluster(bootstrap, _ask)
    may, wanted = known.may(), None if user is None else principal_of(user)
    found = [
        seen
        for seen in known.access.denied
        if (every or not may(seen.access, seen.host)) and wanted in (None, seen.access.principal)
    ]
    found.sort(key=lambda seen: (seen.access.principal, -seen.times, seen.access))
    if as_json:
        print_json([_document(seen) for seen in found])
    else:
        print_table(_COLUMNS, [_row(seen) for seen in found], empty="nothing that clients did is denied")
    _say_what_is_known(known.access)
    return FAILED if found or not known.is_whole else 0


@click.command()
@click.argument("user", required=False)
@click.option(
    "--merge-from",
    type=click.IntRange(2),
    metavar="COUNT",
    help="So many names that are equal up to their last . - or _ become one prefix.",
)
@bootstrap_option
@output_option
def suggest(user: str | None, merge_from: int | None, bootstrap: str, as_json: bool) -> int:
    """Print the least rules for what USER did, or for what everybody did, and name those that nobody used.

    Counted is what brokers remember, each since its start: what the rules allowed, and what they would have
    denied on brokers in shadow mode. So let everything run that seldom runs before you trust it. The lines
    are commands that add what is missing; -o json prints all rules that are needed, for `acl apply`. Rights
    that would make an administrator of USER are named in comments, and left out.
    """
    known = with_cluster(bootstrap, _ask)
    wanted = None if user is None else principal_of(user)
    # A request may have named nothing: no rule can be about that.
    done = [each for each in known.access.done if wanted in (None, each.principal) and each.name]
    every = suggested(without_any_one(done), merge_from=merge_from)
    needed = [rule for rule in every if not power_of(rule)]
    own = [rule for rule in known.rules if wanted in (None, rule.principal)]
    idle = unused(own, known.access.done)
    may = known.may()
    if as_json:
        print_json([document_of(rule) for rule in needed])
    else:
        _print_commands(known.rules, may, needed, wanted)
    for rule in every:
        if power_of(rule) and not _is_there(rule, known.rules, may):
            line = f"# left out, for it gives {power_of(rule)}: {command_of('add', rule)}"
            click.echo(line, err=as_json)
    for rule in idle:
        click.echo(f"# nobody used: {command_of('remove', rule)}", err=as_json)
    _say_what_is_known(known.access)
    return 0 if known.is_whole else FAILED


async def _ask(cluster: Cluster) -> _Known:
    access = await cluster_access(cluster)
    for broker in access.brokers:
        if broker.mode in ("", NO_AUTHORIZER):
            raise ClientFailure(
                f"broker {broker.broker_id} has no authorizer, and remembers nothing",
                "set authorizer.class.name, with headrace.authorizer.mode=shadow at first",
            )
    return _Known(access, await acls.describe_acls(cluster), await acls.authorizer_settings(cluster))


def _print_commands(
    rules: list[AclRule], may: Callable[[Access, str], bool], needed: list[AclRule], wanted: str | None
) -> None:
    missing = [rule for rule in needed if not _is_there(rule, rules, may)]
    for rule in missing:
        click.echo(command_of("add", rule))
    if not needed:
        click.echo(f"no broker has seen {wanted or 'anybody'} do anything that needs a rule", err=True)
    elif not missing:
        click.echo("every rule that is needed is there", err=True)


def _is_there(rule: AclRule, rules: list[AclRule], may: Callable[[Access, str], bool]) -> bool:
    if rule.pattern == PatternType.PREFIXED:
        return rule in rules
    return may(Access(rule.principal, rule.operation, rule.resource_type, rule.name), WILDCARD)


def _say_what_is_known(access: ClusterAccess) -> None:
    """On standard error: what the answer is about."""
    for broker in access.brokers:
        text = f"note: broker {broker.broker_id} ({broker.mode}) remembers since {utc(broker.since_ms)}"
        if broker.overflow:
            text += f"; {broker.overflow} more were too many to remember, so the list is not complete"
        click.echo(text, err=True)
    for broker_id in access.silent:
        click.echo(f"warning: broker {broker_id} does not answer: its clients are not in the list", err=True)


def _row(seen: Seen) -> tuple[object, ...]:
    principal, operation, resource_type, name = seen.access
    resource = (
        f"any {resource_type.name.lower()}" if _is_any(seen.access) else ResourceName(resource_type, name)
    )
    return principal, operation.name, str(resource), seen.host, seen.times, utc(seen.last_ms)


def _is_any(access: Access) -> bool:
    return access.resource_type == ResourceType.TOPIC and access.name == WILDCARD


def _document(seen: Seen) -> dict[str, object]:
    principal, operation, resource_type, name = seen.access
    return {
        "principal": principal,
        "operation": operation.name,
        "resource_type": resource_type.name,
        "name": name,
        "host": seen.host,
        "count": seen.times,
        "last": utc(seen.last_ms),
    }
