"""`headrace mirror ...`"""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "init": ("headrace.cli.mirror_init:init", "Write a mirror.toml to begin with."),
    "run": (
        "headrace.cli.mirror_run:run",
        "Mirror topics, until Ctrl-C or, with --once, to the end.",
    ),
    "status": ("headrace.cli.mirror_status:status", "Show what is mirrored and how far it is behind."),
    "translate": (
        "headrace.cli.mirror_translate:translate",
        "Say which offset of the target stands for one of the source.",
    ),
    "groups": ("headrace.cli.mirror_groups:groups", "Show which offsets of groups have been carried over."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def mirror() -> None:
    """Topics from one cluster into another, every record once, offsets translated exactly."""
