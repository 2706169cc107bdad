"""`headrace migrate`: a cluster that runs becomes this one, step by step."""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "plan": ("headrace.cli.migrate_plan:plan", "Say what would be migrated and what stands in the way."),
    "link": ("headrace.cli.migrate_link:link", "1: make copies of the topics, and let them catch up."),
    "prove": ("headrace.cli.migrate_prove:prove", "2: compare both ends, batch by batch."),
    "groups": ("headrace.cli.migrate_groups:groups", "3: carry committed offsets, and keep them up to date."),
    "cutover": ("headrace.cli.migrate_cutover:cutover", "4: the last records, then take the topics over."),
    "report": ("headrace.cli.migrate_report:report", "Show how far it is, and what the cutover has done."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def migrate() -> None:
    """Move topics and groups of another cluster here while it runs.

    The steps are plan, link, prove, groups and cutover. Each may be run again after any end, and all but the
    last can be taken back with --undo. What was done stands in the file of --state.
    """
