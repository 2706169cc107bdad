"""Which build of Headrace runs: compiled or plain Python. A small request costs a third less in the first."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from typing import Final, NamedTuple

from headrace import __version__
from headrace import core as _package

COMPILED_MODULE: Final = "headrace.core.timers"
"""One of those that `hatch_build.py` compiles. They are compiled together or not at all."""


class Build(NamedTuple):
    version: str
    is_compiled: bool
    python: str

    @property
    def kind(self) -> str:
        return "compiled" if self.is_compiled else "plain"

    def __str__(self) -> str:
        return f"{self.version} ({self.kind}, Python {self.python})"


def is_extension(origin: str | None) -> bool:
    """Whether a module's file was made by a C compiler."""
    return origin is not None and origin.endswith(tuple(EXTENSION_SUFFIXES))


def this_build() -> Build:
    """Found without loading the module: `headrace --version` need not pay for it."""
    spec = PathFinder.find_spec(COMPILED_MODULE, list(_package.__path__))
    origin = None if spec is None else spec.origin
    python = ".".join(map(str, sys.version_info[:3]))
    return Build(__version__, is_extension(origin), python)
