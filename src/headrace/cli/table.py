"""`headrace table ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "init": ("headrace.cli.table_init:init", "Write a table.toml to begin with."),
    "run": (
        "headrace.cli.table_run:run",
        "Keep tables up, until Ctrl-C or, with --once, to where their topics end.",
    ),
    "status": ("headrace.cli.table_status:status", "Show how far tables are behind their topics."),
    "rebuild": ("headrace.cli.table_run:rebuild", "Make tables anew from the beginning of their topics."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def table() -> None:
    """The latest value of each key of a topic as a Delta or Iceberg table, with indexes and views."""
