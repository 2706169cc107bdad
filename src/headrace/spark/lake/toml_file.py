"""A configuration in TOML: read, made into what it describes, and refused with the line that is wrong."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from headrace.core.errors import HeadraceError
from headrace.spark.lake import toml_lines
from headrace.spark.lake.fields import Wrong

C = TypeVar("C")


def read(path: Path, refused: type[HeadraceError], *, command: str) -> str:
    """`command` writes a file to begin with."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise refused(f"{path}: there is no such file; `{command}` writes one to begin with") from None
    try:
        # TOML is UTF-8, whatever the locale is.
        return data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refused(
            f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8; save the file as UTF-8"
        ) from None


def parse(
    text: str,
    path: Path,
    sections: tuple[str, ...],
    make: Callable[[dict[str, object], Path], C],
    refused: type[HeadraceError],
) -> C:
    """`make` is given the document and its directory: paths in a file are relative to it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise refused(f"{path}: not TOML: {error}") from None
    lines = toml_lines.key_lines(text)
    try:
        for name, found in document.items():
            if name not in sections:
                place: toml_lines.Path = (name, 0) if isinstance(found, list) else (name,)
                raise Wrong(place, f"unknown section{meant(name, sections)}")
        return make(document, path.absolute().parent)
    except Wrong as wrong:
        line = toml_lines.line_of(lines, wrong.path)
        where = f"{path}:{line}" if line else f"{path}"
        raise refused(f"{where}: {wrong}") from None


def meant(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"
