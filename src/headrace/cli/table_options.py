"""What the commands of `headrace table` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli.lake_options import SparkMissing

if TYPE_CHECKING:
    from headrace.spark.table.config import TableConfig

F = TypeVar("F", bound=Callable[..., Any])


def config_option(command: F) -> F:
    return click.option(
        "-c",
        "--config",
        "config_path",
        type=click.Path(path_type=Path, dir_okay=False),
        default=Path("table.toml"),
        show_default=True,
        help="Which topics are kept as tables.",
    )(command)


def load_config(path: Path) -> TableConfig:
    try:
        from headrace.spark.table import config
    except ModuleNotFoundError as error:
        raise SparkMissing(
            f"{error.name} is not installed: tables need `pip install 'headrace[spark]'`"
        ) from None
    return config.load(path)
