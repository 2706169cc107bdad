"""What is open, expired or readable by others in a cluster: each broker finds it of itself; and the rules."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from headrace.client import acls
from headrace.client.acl_commands import command_of
from headrace.client.broker_reports import Told, ask_all
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure, Refused
from headrace.config.security_findings import ANONYMOUS, Finding, Level
from headrace.config.security_report import FINDING, SECURITY
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import EVERYONE, AclRule, Permission
from headrace.security.acl_advice import Problem
from headrace.security.acl_advice import lint as linted
from headrace.security.acl_power import power_of

IS_SILENT: Final = "it does not answer"

_DENIES_NOTHING: Final = (
    Problem.DEAD_HOST,
    Problem.UNTYPED_PRINCIPAL,
    Problem.DEAD_PRINCIPAL,
    Problem.NOT_A_WILDCARD,
    Problem.SUPER_USER,
    Problem.OUTVOTED,
)


class Placed(NamedTuple):
    where: str
    """A broker, a file, or the rules."""
    finding: Finding


async def in_cluster(cluster: Cluster) -> list[Placed]:
    broker_ids = sorted(node.node_id for node in (await cluster.metadata([])).brokers)
    answers = await ask_all(cluster, broker_ids, SECURITY)
    found = [
        Placed(f"broker {number}", each) for number, told in answers.items() for each in _of_broker(told)
    ]
    try:
        rules = await acls.describe_acls(cluster)
    except Refused as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        return found  # without an authorizer, which the brokers have told
    settings = await acls.authorizer_settings(cluster)
    return found + [Placed("rules", each) for each in _of_rules(rules, settings.super_users)]


def _of_broker(told: Told | None) -> Iterable[Finding]:
    if told is None:
        return [Finding(Level.SERIOUS, "the broker", IS_SILENT, "start it, or look at it with --config")]
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
