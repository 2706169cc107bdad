"""A group of commands that imports a command's module only when that command is called.

A broker must start without paying for tables and progress bars. The group also turns every error into
one line for people: `error: ...`, and `hint: ...` where something can be done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NoReturn

import click

from headrace.cli.uncollected import uncollected
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError

FAILED = 1
USAGE = 2
INTERRUPTED = 130


class LazyGroup(click.Group):
    """`lazy` maps a command's name to ('module:attribute', one line of help)."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*(name for name in super().list_commands(ctx) if name not in self.lazy), *self.lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        with uncollected():
            command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{attribute} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's signature
        """Of lazy ones from the table alone: `--help` need not import every command."""
        rows = [(name, command.get_short_help_str(100)) for name, command in self.commands.items()]
        rows += [(name, self.lazy[name][1]) for name in self.lazy]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would make an error of it
            silence_output()
            raise click.exceptions.Exit(0) from None

    def main(self, *args: Any, **kwargs: Any) -> Any:
        run: Callable[..., Any] = super().main
        if not kwargs.pop("standalone_mode", True):
            return run(*args, standalone_mode=False, **kwargs)
        try:
            code = run(*args, standalone_mode=False, **kwargs)
            sys.stdout.flush()
        except BaseException as error:
            leave(error)
        sys.exit(code if isinstance(code, int) else 0)


def leave(error: BaseException) -> NoReturn:
    """End the process as the error asks for, without a traceback unless it is a defect of ours."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message())
        sys.exit(USAGE)
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx is not None else "headrace"
        report(error.format_message(), f"`{where} --help` shows its options")
        sys.exit(USAGE)
    if isinstance(error, click.ClickException):
        report(error.format_message())
        sys.exit(error.exit_code)
    if isinstance(error, click.Abort | KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        silence_output()
        sys.exit(0)
    if isinstance(error, ClientFailure):
        report(str(error), error.hint)
        sys.exit(FAILED)
    if isinstance(error, HeadraceError):
        report(str(error))
        sys.exit(FAILED)
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        report(f"{name}{error.strerror or error}")
        sys.exit(FAILED)
    raise error


def silence_output() -> None:
    """Whoever read our output has seen enough. Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report(text: str, hint: str = "") -> None:
    click.echo(f"error: {text}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
