"""`headrace doctor security`: what is open, expired or readable by others, in a cluster or in files."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from headrace.cli.acl_words import command_of
from headrace.cli.lazy_group import FAILED
from headrace.cli.options import bootstrap_option, output_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.client import acls
from headrace.client.broker_reports import Told, ask_all
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.config.security_findings import ANONYMOUS, Finding, Level, examine, expiry
from headrace.config.security_report import FINDING, SECURITY
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import EVERYONE, AclRule, Permission
from headrace.security.acl_advice import Problem
from headrace.security.acl_advice import lint as linted
from headrace.security.acl_power import power_of

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig


_DENIES_NOTHING = (
    Problem.DEAD_HOST,
    Problem.UNTYPED_PRINCIPAL,
    Problem.DEAD_PRINCIPAL,
    Problem.NOT_A_WILDCARD,
    Problem.SUPER_USER,
    Problem.OUTVOTED,
)


class _Placed(NamedTuple):
    where: str
    """A broker, a file, or the rules."""
    finding: Finding


@click.command()
@click.option(
    "--config",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Look at this server.properties, and ask no broker; may be repeated.",
)
@bootstrap_option
@output_option
def security(files: tuple[str, ...], bootstrap: str, as_json: bool) -> int:
    """Find what is open, expired or readable by others, and say what to do about each.

    Every broker of the cluster examines its listeners, certificates, files and settings; the rules are looked
    at besides. With --config the same is found in files, on the machine where they are.

    The exit code is 1 if something is serious.
    """
    found = (
        [each for file in files for each in _in_file(file)] if files else with_cluster(bootstrap, _in_cluster)
    )
    found.sort(key=lambda each: (each.finding.level != Level.SERIOUS, each.where, each.finding))
    if as_json:
        print_json([{"where": where, **finding._asdict()} for where, finding in found])
    else:
        _print(found)
    return FAILED if any(finding.level == Level.SERIOUS for _, finding in found) else 0


def _print(found: list[_Placed]) -> None:
    print_table(
        ("LEVEL", "WHERE", "SUBJECT", "FOUND", "WHAT TO DO"),
        [(each.level.value, where, each.subject, each.text, each.cure) for where, each in found],
        empty="nothing was found",
    )


# --- files ------------------------------------------------------------------------------------------------


def _in_file(path: str) -> Iterator[_Placed]:
    # Only here: whoever asks a cluster needs neither the broker's code nor a library for certificates.
    from headrace.broker.security.self_examination import open_files, private_files
    from headrace.config.broker import BrokerConfig
    from headrace.config.properties_file import read_properties

    properties = read_properties(path)
    config = BrokerConfig.parse(properties)
    findings = [*examine(config), *_expiries(config), *open_files(private_files(config))]
    if any("password" in name or name.endswith(("jaas.config", ".key")) for name in properties):
        findings += open_files([path])
    return (_Placed(path, each) for each in findings)


def _expiries(config: BrokerConfig) -> Iterator[Finding]:
    from headrace.tls.certificate import facts_of
    from headrace.tls.stores import read_identity

    for name, protected in config.listener_security.items():
        if protected.tls is not None:
            facts = facts_of(read_identity(protected.tls.key_store).chain)
            yield from expiry(f"listener {name}", facts.not_after - time.time())


# --- a cluster --------------------------------------------------------------------------------------------


async def _in_cluster(cluster: Cluster) -> list[_Placed]:
    broker_ids = sorted(node.node_id for node in (await cluster.metadata([])).brokers)
    answers = await ask_all(cluster, broker_ids, SECURITY)
    found = [
        _Placed(f"broker {number}", each) for number, told in answers.items() for each in _of_broker(told)
    ]
    try:
        rules = await acls.describe_acls(cluster)
    except Refused as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        return found  # without an authorizer, which the brokers have told
    settings = await acls.authorizer_settings(cluster)
    return found + [_Placed("rules", each) for each in _of_rules(rules, settings.super_users)]


def _of_broker(told: Told | None) -> Iterable[Finding]:
    if told is None:
        return [
            Finding(
                Level.SERIOUS, "the broker", "it does not answer", "start it, or look at it with --config"
            )
        ]
    return [_read(text) for name, text in told.figures.items() if name.startswith(FINDING)]


def _read(text: str) -> Finding:
    try:
        level, subject, found, cure = json.loads(text)
        return Finding(Level(level), str(subject), str(found), str(cure))
    except (ValueError, TypeError):
        raise ClientFailure(f"a broker tells of what this command does not know: {text}") from None


def _of_rules(rules: list[AclRule], super_users: Collection[str] = ()) -> Iterator[Finding]:
    for rule in rules:
        if (power := power_of(rule)) and rule.principal not in super_users:
            yield Finding(
                Level.ADVICE,
                rule.principal,
                f"has {power}, without being a super user: {rule}",
                f"if that is not meant: {command_of('remove', rule)}",
            )
        if rule.permission == Permission.ALLOW and rule.principal in (EVERYONE, ANONYMOUS):
            who = "everybody" if rule.principal == EVERYONE else "whoever does not say who they are"
            yield Finding(
                Level.SERIOUS,
                str(rule),
                f"{who} may do this",
                f"give it to those who need it, then {command_of('remove', rule)}",
            )
    for problem, rule, _other, text in linted(rules, super_users):
        if rule.permission == Permission.DENY and problem in _DENIES_NOTHING:
            yield Finding(
                Level.SERIOUS,
                str(rule),
                f"it denies nothing: {text}",
                f"add the right one, then {command_of('remove', rule)}",
            )
