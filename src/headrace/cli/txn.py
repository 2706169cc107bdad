"""`headrace txn ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "list": ("headrace.cli.txn_list:list_", "List transactional ids, their state and how long it lasts."),
    "describe": ("headrace.cli.txn_list:describe", "Show partitions, start, timeout and coordinator."),
    "find-hanging": (
        "headrace.cli.txn_abort:find_hanging",
        "Find open transactions that nobody will end any more.",
    ),
    "abort": ("headrace.cli.txn_abort:abort", "End a transaction that holds consumers up."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def txn() -> None:
    """Look at transactions; find and abort those that hold consumers up."""
