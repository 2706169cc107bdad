"""`headrace doctor check`: each finding with its reason, and the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource

from headrace.cli.options import bootstrap_option, command_config, output_option, with_cluster
from headrace.cli.render import print_json, print_table, visible
from headrace.cli.values import counted
from headrace.client.shell_words import word
from headrace.doctor.checks.registry import chosen
from headrace.doctor.gathering import gather
from headrace.doctor.model import Check, Finding, Level, Result, examine

SHOWN = 10
"""Names that are shown of each finding; --json has them all."""
COMMANDS_SHOWN = 3
EXIT_SERIOUS, EXIT_WARNING, EXIT_UNKNOWN = 3, 4, 5
_COLOURS = {Level.SERIOUS: "red", Level.WARNING: "yellow", Level.NOTICE: None}
_GAP = " " * 9


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--list", "lists", is_flag=True, help="Show the checks, and ask no broker.")
@click.option(
    "--look",
    "look_seconds",
    type=click.FloatRange(0),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between the two looks at groups that have members.",
)
@bootstrap_option
@output_option
@click.pass_context
def check(
    context: click.Context,
    names: tuple[str, ...],
    lists: bool,
    look_seconds: float,
    bootstrap: str,
    as_json: bool,
) -> int:
    """Look at the whole cluster: what is wrong, why it matters, and the command that mends it.

    A NAME is that of a check or of a group of them; without one all checks run. Nothing is changed.

    The exit code is 3 if something is serious, 4 if there is a warning, 5 if nothing worse was found but a
    check could not know, and 0 otherwise, notices or not.
    """
    checks = chosen(names)
    if lists:
        _list(checks, as_json)
        return 0
    facts = with_cluster(bootstrap, lambda cluster: gather(cluster, look_seconds))
    results = examine(facts, checks)
    connection = _connection(context, bootstrap)
    if as_json:
        print_json(_document(results, connection))
    else:
        _print(results, connection)
    return _exit_code(results)


def _exit_code(results: Sequence[Result]) -> int:
    levels = {found.level for result in results for found in result.findings}
    if Level.SERIOUS in levels:
        return EXIT_SERIOUS
    if Level.WARNING in levels:
        return EXIT_WARNING
    return EXIT_UNKNOWN if any(result.unknown for result in results) else 0


def _connection(context: click.Context, bootstrap: str) -> str:
    """What to add to a command so that it goes to this cluster. The environment is there already."""
    words = []
    if context.get_parameter_source("bootstrap") == ParameterSource.COMMANDLINE:
        words += ["-b", word(bootstrap)]
    properties = command_config(context)
    if properties and context.get_parameter_source("command_config") == ParameterSource.COMMANDLINE:
        words += ["--command-config", word(properties)]
    return "".join(f" {each}" for each in words)


def _commands(found: Finding, connection: str) -> list[str]:
    return [each + connection if each.startswith("headrace ") else each for each in found.commands]


def _sorted(results: Sequence[Result]) -> list[tuple[Check, Finding]]:
    """Worst first, else in the order of the checks."""
    order = list(Level)
    placed = [(result.check, found) for result in results for found in result.findings]
    return sorted(placed, key=lambda each: order.index(each[1].level))


def _list(checks: Sequence[Check], as_json: bool) -> None:
    if as_json:
        print_json(
            [{name: value for name, value in each._asdict().items() if name != "look"} for each in checks]
        )
        return
    print_table(("CHECK", "GROUP", "FINDS"), [(each.name, each.group, each.finds) for each in checks])


def _document(results: Sequence[Result], connection: str) -> dict[str, object]:
    return {
        "checks": len(results),
        "findings": [
            {
                "check": check.name,
                "level": found.level.value,
                "what": found.what,
                "why": check.why,
                "where": list(found.where),
                "commands": _commands(found, connection),
                "advice": found.advice,
            }
            for check, found in _sorted(results)
        ],
        "not_known": [
            {"check": result.check.name, "why": result.unknown} for result in results if result.unknown
        ],
    }


def _print(results: Sequence[Result], connection: str) -> None:
    found = _sorted(results)
    for check, finding in found:
        _print_finding(check, finding, connection)
    unknown = [result for result in results if result.unknown]
    for result in unknown:
        click.echo(f"not known: {result.check.name}: {visible(result.unknown)}")
    told = counted(len(found), "finding") if found else "nothing was found"
    missing = f", {len(unknown)} could not know" if unknown else ""
    click.echo(f"{told}; {counted(len(results), 'check')}{missing}")


def _print_finding(check: Check, finding: Finding, connection: str) -> None:
    names = ", ".join(finding.where[:SHOWN])
    more = f" and {len(finding.where) - SHOWN} more" if len(finding.where) > SHOWN else ""
    line = f"{finding.what}: {names}{more}" if names else finding.what
    click.secho(f"{finding.level.value:9}", fg=_COLOURS[finding.level], bold=True, nl=False)
    click.echo(f"{visible(line)}  [{check.name}]")
    click.echo(f"{_GAP}why: {check.why}")
    if finding.advice:
        click.echo(f"{_GAP}do: {visible(finding.advice)}")
    commands = _commands(finding, connection)
    for command in commands[:COMMANDS_SHOWN]:
        click.echo(f"{_GAP}$ {command}")
    if len(commands) > COMMANDS_SHOWN:
        click.echo(f"{_GAP}and {len(commands) - COMMANDS_SHOWN} more like it, with --json")
