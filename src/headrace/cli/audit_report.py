"""`headrace audit report`: the tiers over time, in a file for a browser, and in the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import click

from headrace.audit import chart
from headrace.audit.verdict import State, Verdict, window_text
from headrace.cli.audit_options import certificates_option, document, moment_ms, read_verdicts
from headrace.cli.completions import complete_topics
from headrace.cli.options import bootstrap_option, json_option
from headrace.cli.render import print_json

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_COLOURS: Final = {
    State.CERTIFIED: "green",
    State.DIFFERENT: "red",
    State.INCOMPLETE: "yellow",
    State.OPEN: "white",
}
_LISTED: Final = 10


@click.command()
@click.argument("topics", metavar="[TOPIC...]", nargs=-1, shell_complete=complete_topics)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Write a chart there: .html, or .svg for one topic. Without it, draw in the terminal.",
)
@click.option("--since", metavar="MOMENT", callback=moment_ms, help="Only windows from then on.")
@click.option("--until", metavar="MOMENT", callback=moment_ms, help="Only windows that begin before then.")
@certificates_option
@bootstrap_option
@json_option
def report(
    topics: tuple[str, ...],
    output: Path | None,
    since: int | None,
    until: int | None,
    certificates: str,
    bootstrap: str,
    as_json: bool,
) -> None:
    """Draw the tiers of topics over time: those that are named, or all.

    \b
    headrace audit report orders --output orders.html
    headrace audit report --since 2026-11-15T00:00
    """
    found = read_verdicts(bootstrap, certificates, topics, since)
    found = [verdict for verdict in found if until is None or verdict.window_ms < until]
    if as_json:
        print_json([document(verdict) for verdict in found])
        return
    by_topic = {topic: list(verdicts) for topic, verdicts in groupby(found, key=lambda each: each.topic)}
    if not by_topic:
        raise click.ClickException("there are no verdicts yet: is `headrace audit run` running?")
    if output is None:
        for topic, verdicts in by_topic.items():
            _draw_in_terminal(topic, verdicts)
        return
    output.write_text(_file(output, by_topic))
    for topic, verdicts in by_topic.items():
        click.echo(f"{topic}: {chart.summary(verdicts)}")
    click.echo(f"wrote {output}")


def _file(output: Path, by_topic: dict[str, list[Verdict]]) -> str:
    charts = [chart.draw(topic, verdicts) for topic, verdicts in by_topic.items()]
    if output.suffix != ".svg":
        return chart.page(charts, time.time_ns() // 1_000_000)
    if len(charts) > 1:
        raise click.UsageError("an .svg holds one topic: name it, or write .html")
    return charts[0]


def _draw_in_terminal(topic: str, verdicts: Sequence[Verdict]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    tiers = chart.tiers_of(verdicts)
    width = max(len(name) for name in (*tiers, "verdict"))
    shown = list(verdicts)[-max(10, console.width - width - 14) :]
    console.print(Text(topic, "bold"), Text(chart.summary(verdicts), "dim"))
    peak = max((verdict.tiers[tier].count for verdict in shown for tier in verdict.tiers), default=0) or 1
    for tier in tiers:
        line = Text(tier.ljust(width + 1))
        for verdict in shown:
            wrong = any(found.tier == tier for found in verdict.differences)
            line.append(_block(verdict, tier, peak), "bold red" if wrong else "blue")
        line.append(f" {sum(each.tiers[tier].count for each in verdicts if tier in each.tiers):,}", "dim")
        console.print(line)
    strip = Text("verdict".ljust(width + 1))
    for verdict in shown:
        strip.append("■", _COLOURS[verdict.state])
    console.print(strip)
    for verdict in chart.noteworthy(verdicts)[:_LISTED]:
        console.print(Text(f"{window_text(verdict.window_ms)}  {verdict.headline}", _COLOURS[verdict.state]))


def _block(verdict: Verdict, tier: str, peak: int) -> str:
    tally = verdict.tiers.get(tier)
    if tally is None or not tally.count:
        return _BLOCKS[0]
    return _BLOCKS[max(1, round(tally.count / peak * (len(_BLOCKS) - 1)))]
