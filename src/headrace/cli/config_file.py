"""What commands have in common whose jobs for Spark are described in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from headrace.client.errors import Unreachable
from headrace.core.errors import HeadraceError

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")


class SparkMissing(HeadraceError):
    pass


def config_option(default: str, text: str) -> Callable[[F], F]:
    return click.option(
        "-c",
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        default=Path(default),
        show_default=True,
        help=text,
    )


def imported(find: Callable[[], C], what: str) -> C:
    """What `find` imports. Without Spark the commands are still there, and say what to install."""
    try:
        return find()
    except ModuleNotFoundError as error:
        raise SparkMissing(f"{error.name} is not installed: {what} `pip install 'headrace[spark]'`") from None


@contextmanager
def brokers_of(path: Path) -> Iterator[None]:
    """They are named in the file: these commands have no option for others, so no hint may speak of one."""
    try:
        yield
    except Unreachable as error:
        error.hint = f'start one with `headrace up`, or change "bootstrap.servers" below [kafka] in {path}'
        raise


def write_template(path: Path, template: str, command: str) -> None:
    """A configuration to begin with. An existing file is left alone."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(template.format(name=path))
    except FileExistsError:
        raise click.ClickException(f"{path} exists; name another file, or edit that one") from None
    click.echo(f"wrote {path}; edit it, then: {command} --config {path}")
