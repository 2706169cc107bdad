"""`headrace doctor`: what is wrong, and what to do."""

from __future__ import annotations

import click

from headrace.cli.lazy_group import LazyGroup

_COMMANDS = {
    "check": (
        "headrace.cli.doctor_check:check",
        "Look at the whole cluster; this is what `headrace doctor` alone does.",
    ),
    "security": (
        "headrace.cli.doctor_security:security",
        "Find what is open, expired or readable by others.",
    ),
}
_HELP = ("-h", "--help")


class _Doctor(LazyGroup):
    """`headrace doctor` and `headrace doctor CHECK --json` mean `headrace doctor check ...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args[0] if args else ""
        if named not in self.lazy and named not in _HELP:
            args = ["check", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Doctor, lazy=_COMMANDS)
def doctor() -> None:
    """Find what is wrong, and say what to do. (For Spark: `headrace spark doctor`.)

    Without a command it looks at the whole cluster: `headrace doctor check --help` has its options.
    """
