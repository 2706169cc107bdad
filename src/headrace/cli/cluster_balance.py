"""`headrace cluster balance`: how even the brokers are, and what self-balancing does or would do."""

from __future__ import annotations

from typing import Final

import click

from headrace.cli.balance_look import BalanceLook, look
from headrace.cli.options import bootstrap_option, json_option, with_cluster
from headrace.cli.render import print_json, print_table
from headrace.cli.values import counted
from headrace.controller.self_balancing.evenness import GOALS, Evenness
from headrace.controller.self_balancing.loads import Step
from headrace.controller.self_balancing.planning import plan
from headrace.controller.self_balancing.slices import result_of

SETS: Final = 1000
"""At most so many are worked out for --dry-run."""
SHOWN: Final = 5
_UNITS: Final = {"bytes": " MB", "rate in": " MB/s", "rate out": " MB/s"}


@click.command()
@click.option("--dry-run", is_flag=True, help="Also show what it would move, first and in all.")
@click.option(
    "--look",
    "seconds",
    type=click.FloatRange(0),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to look for rates; 0 leaves them out.",
)
@bootstrap_option
@json_option
def balance(dry_run: bool, seconds: float, bootstrap: str, as_json: bool) -> None:
    """Show how even the brokers are, and what self-balancing decided last. Changes nothing.

    With --dry-run also what it would do now, whether it is turned on or not. The rates that it goes by
    itself are those of some minutes, so a plan from a short look can differ.
    """
    seen = with_cluster(bootstrap, lambda cluster: look(cluster, seconds))
    sets = _sets(seen) if dry_run and seen.hindrance is None else []
    if as_json:
        print_json(_document(seen, sets, dry_run))
        return
    click.echo(f"self-balancing is {'on' if seen.enabled else 'off'}")
    print_table(("BROKER", *(goal.upper() for goal in GOALS)), _rows(seen))
    for decision in seen.decisions[-SHOWN:]:
        click.echo(str(decision))
    if seen.hindrance is not None:
        click.echo(f"nothing would be moved: {seen.hindrance}")
    elif dry_run:
        _tell_sets(seen, sets)


def _tell_sets(seen: BalanceLook, sets: list[list[Step]]) -> None:
    worst = Evenness(seen.load, seen.settings).deviations()
    if not sets:
        click.echo(f"nothing would help: {worst[0]}" if worst else "nothing to move: the brokers are even")
        return
    click.echo(f"{worst[0]}; first of all would be moved:")
    for step in sets[0]:
        click.echo(f"  {step}")
    steps = [step for each in sets for step in each]
    copies = [step for step in steps if step.adding]
    copied = sum(seen.load.partitions[step.partition].size_bytes for step in copies)
    click.echo(
        f"in all: {counted(len(sets), 'set')}, {counted(len(steps), 'change')}, of which"
        f" {counted(len(copies), 'copy', 'copies')} of {copied / 1e6:,.1f} MB"
    )


def _sets(seen: BalanceLook) -> list[list[Step]]:
    """What would be moved one after the other until nothing helps any more, if the load stays as it is."""
    load = seen.load
    sets: list[list[Step]] = []
    while len(sets) < SETS:
        planned = result_of(plan(load, seen.settings, most=seen.settings.max_moves))
        if not planned.steps:
            break
        partitions = dict(load.partitions)
        for step in planned.steps:
            partitions[step.partition] = partitions[step.partition]._replace(replicas=step.after)
        load = load._replace(partitions=partitions)
        sets.append(planned.steps)
    return sets


def _rows(seen: BalanceLook) -> list[tuple[object, ...]]:
    evenness = Evenness(seen.load, seen.settings)
    return [
        (
            broker,
            *(_cell(evenness, broker, goal, name) for goal, name in enumerate(GOALS)),
        )
        for broker in seen.load.brokers
    ]


def _cell(evenness: Evenness, broker: int, goal: int, name: str) -> str:
    load = evenness.load_of(broker)[goal]
    amount = f"{load / 1e6:,.1f}{_UNITS[name]}" if name in _UNITS else f"{load:,.0f}"
    return f"{amount} ({evenness.share(broker, goal):+.0%})" if goal in evenness.counted else amount


def _document(seen: BalanceLook, sets: list[list[Step]], dry_run: bool) -> dict[str, object]:
    evenness = Evenness(seen.load, seen.settings)
    document: dict[str, object] = {
        "enabled": seen.enabled,
        "hindrance": seen.hindrance,
        "excluded_brokers": sorted(seen.excluded),
        "goals": [GOALS[goal] for goal in evenness.counted],
        "uneven": [
            {"broker": each.broker, "goal": each.goal_name, "share": round(each.share, 4)}
            for each in evenness.deviations()
        ],
        "brokers": [
            {"id": broker, **dict(zip(GOALS, evenness.load_of(broker), strict=True))}
            for broker in seen.load.brokers
        ],
        "decisions": [
            {"time_ms": each.wall_ms, "what": each.what, "why": each.why} for each in seen.decisions
        ],
    }
    if dry_run:
        document["sets"] = [
            [
                {
                    "topic": step.partition.topic,
                    "partition": step.partition.partition,
                    "from": list(step.before),
                    "to": list(step.after),
                    "goal": step.goal,
                }
                for step in each
            ]
            for each in sets
        ]
    return document
