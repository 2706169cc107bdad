"""`headrace audit status`: what the audit says of each topic, in a line, and of what is wrong, in one line
each."""

from __future__ import annotations

from itertools import groupby

import click

from headrace.audit.chart import noteworthy
from headrace.audit.verdict import State, Verdict, window_text
from headrace.cli.audit_options import certificates_option, document, moment_ms, read_verdicts
from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.render import print_json, print_table


@click.command()
@click.argument("topics", metavar="[TOPIC...]", nargs=-1, shell_complete=complete_topics)
@click.option("--since", metavar="MOMENT", callback=moment_ms, help="Only windows from then on.")
@click.option("--all", "show_all", is_flag=True, help="Every window, not only what is wrong.")
@certificates_option
@bootstrap_option
@json_option
def status(
    topics: tuple[str, ...],
    since: int | None,
    show_all: bool,
    certificates: str,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Show what the audit says of each topic: those that are named, or all.

    CERTIFIED-UNTIL is the end of the last window before which every window is certified.
    """
    found = read_verdicts(bootstrap, certificates, topics, since)
    if as_json:
        print_json([document(verdict) for verdict in found])
        return
    print_table(
        ("TOPIC", "WINDOWS", "CERTIFIED", "DIFFERENT", "INCOMPLETE", "OPEN", "CERTIFIED-UNTIL"),
        [_row(topic, list(verdicts)) for topic, verdicts in groupby(found, key=lambda each: each.topic)],
        empty="no verdicts: is `headrace audit run` running?",
    )
    shown = found if show_all else noteworthy(found)
    if shown:
        click.echo()
        print_table(
            ("TOPIC", "WINDOW", "STATE", "WHAT"),
            [(each.topic, window_text(each.window_ms), each.state.value, each.headline) for each in shown],
        )


def _row(topic: str, verdicts: list[Verdict]) -> tuple[object, ...]:
    counts = [
        sum(verdict.state is state for verdict in verdicts)
        for state in (State.CERTIFIED, State.DIFFERENT, State.INCOMPLETE, State.OPEN)
    ]
    until = certified_until(verdicts)
    return (topic, len(verdicts), *counts, None if until is None else window_text(until))


def certified_until(verdicts: list[Verdict]) -> int | None:
    """`verdicts` in the order of time."""
    until = None
    for verdict in verdicts:
        if verdict.state is not State.CERTIFIED:
            break
        until = verdict.window_ms + verdict.length_ms
    return until
