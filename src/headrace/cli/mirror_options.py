"""What the commands of `headrace mirror` share: the configuration, and questions to both clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.cli import config_file
from headrace.client.errors import Unreachable

if TYPE_CHECKING:
    from headrace.spark.mirror.config import MirrorConfig

T = TypeVar("T")

config_option = config_file.config_option("mirror.toml", "Which topics go from where to where.")


def load_config(path: Path) -> MirrorConfig:
    def reader() -> Callable[[Path], MirrorConfig]:
        from headrace.spark.mirror import config

        return config.load

    return config_file.imported(reader, "the mirror needs")(path)


def asked(path: Path, question: Coroutine[Any, Any, T]) -> T:
    """The brokers are named in the file, so the hint names it too."""
    try:
        return asyncio.run(question)
    except Unreachable as error:
        error.hint = f'check "bootstrap.servers" below [source] and [target] in {path}'
        raise
