"""`headrace group ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "list": ("headrace.cli.group_list:list_", "List groups, their state and how many members they have."),
    "describe": ("headrace.cli.group_list:describe", "Show members, where they run, and what they read."),
    "lag": ("headrace.cli.group_lag:lag", "Show how far groups are behind; --watch for a live view."),
    "reset": ("headrace.cli.group_reset:reset", "Move committed offsets; shows the plan unless --execute."),
    "delete": ("headrace.cli.group_delete:delete", "Delete groups with their offsets."),
    "delete-offsets": (
        "headrace.cli.group_delete:delete_offsets",
        "Delete what a group has committed for a topic.",
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def group() -> None:
    """Look at consumer groups, find and fix their lag, delete them."""
