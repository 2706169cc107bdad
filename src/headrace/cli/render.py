"""What commands print. Tables are drawn by rich on a terminal; elsewhere they are plain columns for awk."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

Row = Sequence[object]


def is_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(document: Any) -> None:
    """One document; `print_json_line` is for streams of them."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_json_line(document: Any) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Row], *, empty: str = "") -> None:
    """Numbers stand to the right. If there is no row, `empty` goes to stderr, so that a pipe stays clean."""
    if not rows:
        if empty:
            click.echo(empty, err=True)
        return
    numeric = [_is_numeric([row[at] for row in rows]) for at in range(len(columns))]
    if is_terminal():
        _print_rich(columns, rows, numeric)
    else:
        _print_plain(columns, rows, numeric)


def _is_numeric(values: Sequence[object]) -> bool:
    """Numbers, and at most some that are not known."""
    known = [value for value in values if value is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(str(item) for item in value) or "-"
    # A line break inside a cell would break the columns.
    return str(value).replace("\n", " ") or "-"


def _print_rich(columns: Sequence[str], rows: Sequence[Row], numeric: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row))
    Console().print(table)


def _print_plain(columns: Sequence[str], rows: Sequence[Row], numeric: Sequence[bool]) -> None:
    lines = [list(columns), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    for line in lines:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def printable(data: bytes | None) -> str | None:
    """Bytes as text for JSON; what is not UTF-8 is escaped as \\xNN, never lost."""
    return None if data is None else data.decode("utf-8", "backslashreplace")
