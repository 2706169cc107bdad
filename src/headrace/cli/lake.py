"""`headrace lake ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "init": ("headrace.cli.lake_init:init", "Write a lake.toml to begin with."),
    "run": (
        "headrace.cli.lake_run:run",
        "Load topics into tables, until Ctrl-C or, with --once, to the end.",
    ),
    "backfill": (
        "headrace.cli.lake_backfill:backfill",
        "Load a topic's history from its segments, past the brokers.",
    ),
    "status": ("headrace.cli.lake_status:status", "Show what is loaded and how far it is behind."),
    "replay": ("headrace.cli.lake_upkeep:replay", "Try the dead letters of topics again, after a fix."),
    "maintain": ("headrace.cli.lake_upkeep:maintain", "Put small files together, remove old snapshots."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def lake() -> None:
    """Topics into Delta, Iceberg or Parquet tables, every record once."""
