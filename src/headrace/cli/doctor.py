"""`headrace doctor`: what is wrong, and what to do."""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "security": (
        "headrace.cli.doctor_security:security",
        "Find what is open, expired or readable by others.",
    ),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def doctor() -> None:
    """Find what is wrong, and say what to do. (For Spark: `headrace spark doctor`.)"""
