"""What the commands of `headrace table` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli import config_file

if TYPE_CHECKING:
    from headrace.spark.table.config import TableConfig

config_option = config_file.config_option("table.toml", "Which topics are kept as tables.")


def load_config(path: Path) -> TableConfig:
    def reader() -> Callable[[Path], TableConfig]:
        from headrace.spark.table import config

        return config.load

    return config_file.imported(reader, "tables need")(path)
