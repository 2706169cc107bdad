"""`headrace acl explain` and `lint`: what the rules mean. The thinking is done in headrace.security."""

from __future__ import annotations

import click

from headrace.cli.acl_words import ResourceName, operation_of, resource_of
from headrace.cli.lazy_group import FAILED
from headrace.cli.options import bootstrap_option, output_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.cli.values import counted
from headrace.client import acls
from headrace.client.acl_commands import command_of
from headrace.client.acls import AuthorizerSettings
from headrace.client.cluster import Cluster
from headrace.client.errors import ClientFailure
from headrace.security.acl import WILDCARD, AclRule, Operation
from headrace.security.acl_advice import Cure, Explanation, Finding, Problem
from headrace.security.acl_advice import explain as explained
from headrace.security.acl_advice import lint as linted
from headrace.security.acl_document import document_of, principal_of
from headrace.security.acl_index import AclIndex, Reason
from headrace.security.hosts import java_host

_REASONS = {
    Reason.SUPER_USER: "it is a super user, whom no rule concerns",
    Reason.WRITES_SOME_TOPIC: "a right to WRITE some topic is enough for it",
    Reason.NO_RULE: "no rule is about the {resource}",
    Reason.NONE_MATCHES: "there are rules about the {resource}, and none of them is for this",
}


@click.command()
@click.argument("principal")
@click.argument("operation")
@click.argument("resource", nargs=-1, required=True)
@click.option("--host", metavar="ADDRESS", help="From where; rules for single addresses count only with it.")
@bootstrap_option
@output_option
def explain(
    principal: str, operation: str, resource: tuple[str, ...], host: str | None, bootstrap: str, as_json: bool
) -> int:
    """Say whether PRINCIPAL may do OPERATION on RESOURCE, which rule decides, and the smallest cure.

    \b
    headrace acl explain alice read orders
    headrace acl explain alice consume topic:orders --host 10.0.0.7
    headrace acl explain alice read group:readers
    headrace acl explain User:alice READ TOPIC orders       (as a broker's log writes it)
    headrace acl explain alice create cluster

    The exit code is 0 for yes and 1 for no.
    """
    who, what, where = principal_of(principal), operation_of(operation), resource_of(":".join(resource))
    address = WILDCARD if host is None else _address(host)
    rules, settings = with_cluster(bootstrap, _rules_and_settings)
    index = AclIndex(rules, allow_everyone_if_no_acl_found=settings.allow_everyone_if_no_acl_found)
    result = explained(index, settings.super_users, who, address, what, where.type, where.name)
    if as_json:
        print_json(_document(who, what, where, result))
    else:
        _print(who, what, where, result)
    return 0 if result.verdict.allowed else FAILED


@click.command()
@bootstrap_option
@output_option
def lint(bootstrap: str, as_json: bool) -> int:
    """Find rules that do not do what they seem to: for hosts and principals that no client has, with a * that
    stands for itself, open to everyone, without effect beside others. The exit code is 1 if there are any."""
    rules, settings = with_cluster(bootstrap, _rules_and_settings)
    findings = [each for each in linted(rules, settings.super_users) if not _belongs_to_a_set(each)]
    if as_json:
        print_json([_finding(each) for each in findings])
    else:
        print_table(
            ("PROBLEM", "RULE", "WHY"),
            [(each.problem.value, each.rule, each.text) for each in findings],
            empty=f"nothing to say about {counted(len(rules), 'rule')}",
        )
    return FAILED if findings else 0


async def _rules_and_settings(cluster: Cluster) -> tuple[list[AclRule], AuthorizerSettings]:
    return await acls.describe_acls(cluster), await acls.authorizer_settings(cluster)


def _belongs_to_a_set(found: Finding) -> bool:
    """READ or WRITE with the DESCRIBE that it implies: so `acl grant` and kafka-acls write them."""
    return (
        found.problem == Problem.COVERED
        and found.other is not None
        and found.rule.operation == Operation.DESCRIBE
        and found.other.operation in (Operation.READ, Operation.WRITE)
        and found.rule == found.other._replace(operation=Operation.DESCRIBE)
    )


def _address(text: str) -> str:
    try:
        return java_host(text)
    except ValueError:
        raise ClientFailure(f"{text!r} is not an IP address", "rules know addresses, not names") from None


def _print(who: str, what: Operation, where: ResourceName, result: Explanation) -> None:
    verdict = result.verdict
    click.echo(f"{'yes' if verdict.allowed else 'no'}: {who} may{_not(result)} {what.name} {where}")
    if verdict.rule is not None:
        click.echo(f"because of the rule: {verdict.rule}")
    else:
        text = _REASONS[verdict.reason].format(resource=where)
        if verdict.allowed and verdict.reason == Reason.NO_RULE:
            text += ", and allow.everyone.if.no.acl.found is set"
        click.echo(f"because {text}")
    if result.cure is not None:
        click.echo("the smallest cure:")
        for line in _commands(result.cure):
            click.echo(f"  {line}")


def _not(result: Explanation) -> str:
    return "" if result.verdict.allowed else " not"


def _commands(cure: Cure) -> list[str]:
    return [
        *(command_of("remove", rule) for rule in cure.remove),
        *(command_of("add", rule) for rule in cure.add),
    ]


def _document(who: str, what: Operation, where: ResourceName, result: Explanation) -> dict[str, object]:
    verdict, cure = result.verdict, result.cure
    return {
        "principal": who,
        "operation": what.name,
        "resource_type": where.type.name,
        "name": where.name,
        "allowed": verdict.allowed,
        "reason": verdict.reason.value,
        "rule": None if verdict.rule is None else document_of(verdict.rule),
        "cure": None
        if cure is None
        else {
            "remove": [document_of(rule) for rule in cure.remove],
            "add": [document_of(rule) for rule in cure.add],
            "commands": _commands(cure),
        },
    }


def _finding(found: Finding) -> dict[str, object]:
    return {
        "problem": found.problem.value,
        "rule": document_of(found.rule),
        "other": None if found.other is None else document_of(found.other),
        "text": found.text,
    }
