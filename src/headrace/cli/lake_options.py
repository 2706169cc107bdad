"""What the commands of `headrace lake` have in common: the configuration, and a session for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from headrace.cli import config_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # a command that only reads the configuration starts no Spark

    from headrace.spark.lake.config import LakeConfig

F = TypeVar("F", bound=Callable[..., Any])


config_option = config_file.config_option("lake.toml", "Which topics go where.")


def master_option(command: F) -> F:
    return click.option(
        "--master",
        metavar="URL",
        help="Spark's master, as in local[4] or spark://host:7077; before the file's.",
    )(command)


def load_config(path: Path) -> LakeConfig:
    def reader() -> Callable[[Path], LakeConfig]:
        from headrace.spark.lake import config

        return config.load

    return config_file.imported(reader, "the lake needs")(path)


@contextmanager
def spark_for(config: LakeConfig, master: str | None) -> Iterator[SparkSession]:
    from headrace.spark.lake.sessions import session_for

    spark = session_for(config, master=master)
    try:
        yield spark
    finally:
        spark.stop()
