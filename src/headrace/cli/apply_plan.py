"""The plan of `headrace apply`, as people and programs read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import click

from headrace.cli.render import print_json, visible
from headrace.cli.values import counted
from headrace.desired.changes import UNSET, Change, Difference, RuleAddition, RuleRemoval
from headrace.desired.plan import Plan
from headrace.desired.present import Use

_SIGNS: Final = {"create": "+", "change": "~", "delete": "-"}


def print_plan(plan: Plan, uses: Mapping[str, Use], *, as_json: bool, done: bool | None) -> None:
    """`done` is None where nobody has decided yet, or nobody is to. Names and values are others' words: none
    of them may look like a line of the plan."""
    if as_json:
        print_json(_document(plan, uses, done))
        return
    for change in plan.changes:
        click.echo(visible(f"{_SIGNS[change.verb]} {_words(change)}"))
        for difference in change.differences:
            click.echo(visible(f"    {difference.what}: {_values(change, difference)}"))
        use = uses.get(change.name) if change.kind in ("topic", "link") and change.verb == "delete" else None
        if use:
            click.echo(visible(f"    it {use}"))
    for sentence in plan.refused:
        click.echo(visible(f"error: {sentence}"), err=True)
    for name in plan.moving:
        click.echo(
            f"note: {name} is still being moved; `headrace topic reassign {name} --follow` waits", err=True
        )
    if plan.stays:
        some = visible(", ".join(plan.stays[:3]) + (", and others" if len(plan.stays) > 3 else ""))
        click.echo(
            f"note: {counted(len(plan.stays), 'thing')} that the file owns and does not name: {some}; kept",
            err=True,
        )
    click.echo(_summary(plan), err=True)


def question(plan: Plan) -> str:
    if len(plan.changes) == 1:
        return "apply this change?"
    return f"apply these {len(plan.changes):,} changes?"


def _words(change: Change) -> str:
    if isinstance(change, RuleAddition | RuleRemoval):
        return change.name
    return f"{change.kind} {change.name}"


def _values(change: Change, difference: Difference) -> str:
    if change.verb == "create" or (difference.old is None and difference.what == "password"):
        return difference.new or ""
    return f"{_or_unset(difference.old)} -> {_or_unset(difference.new)}"


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value or '""'


def _summary(plan: Plan) -> str:
    if plan.refused:
        return "nothing was changed: the file cannot be applied as it is"
    if not plan.changes:
        return "nothing to change"
    verbs = Counter(change.verb for change in plan.changes)
    return "to " + ", ".join(f"{verb} {verbs[verb]:,}" for verb in _SIGNS if verbs[verb])


def _document(plan: Plan, uses: Mapping[str, Use], done: bool | None) -> dict[str, object]:
    return {
        "done": bool(done),
        "changes": [
            {
                "change": change.verb,
                "kind": change.kind,
                "name": change.name,
                "differences": [each._asdict() for each in change.differences],
            }
            for change in plan.changes
        ],
        "refused": list(plan.refused),
        "stays": list(plan.stays),
        "moving": list(plan.moving),
        "uses": {
            name: {"records": use.records, "readers": list(use.readers)} for name, use in uses.items() if use
        },
    }
