"""The class of `compiled_columns.c`: the installed one, or one that is compiled here."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from headrace.arrow.columns import Bounds, Columns, RecordColumns, Wanted, column_maker

SOURCE = Path(__file__).parents[1] / "src/headrace/arrow/compiled_columns.c"
_NAME = "headrace.arrow.compiled_columns"
_KEPT = Path(__file__).parents[1] / "build/columns"


@cache
def compiled_maker() -> Callable[[Wanted, Bounds], Columns]:
    """Made once for each source and Python, by whichever process comes first."""
    maker = column_maker()
    if maker is not RecordColumns:
        return maker
    stamp = f"{SOURCE.stat().st_mtime_ns}-{sys.implementation.cache_tag}"
    made = _KEPT / f"{stamp}.so"
    if not made.exists():
        _KEPT.mkdir(parents=True, exist_ok=True)
        half = _KEPT / f"{stamp}.{os.getpid()}"
        compiler = (os.environ.get("CC") or "cc").split()[0]
        include = f"-I{sysconfig.get_path('include')}"
        flags = ["-O3", "-Wall", "-Wextra", "-Werror", "-Wno-cast-function-type"]
        command = [compiler, *flags, "-Wno-missing-field-initializers", "-shared", "-fPIC", include]
        subprocess.run([*command, "-o", str(half), str(SOURCE)], check=True, timeout=120)
        half.rename(made)
    loader = ExtensionFileLoader(_NAME, str(made))
    spec = spec_from_loader(_NAME, loader)
    assert spec is not None
    module: Any = module_from_spec(spec)
    loader.exec_module(module)
    found: Callable[[Wanted, Bounds], Columns] = module.RecordColumns
    return found
