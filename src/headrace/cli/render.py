"""What commands print. Tables are drawn by rich on a terminal; elsewhere they are plain columns for awk.

Each command prints in one of these ways: what the others need is imported when they are used.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any, Final

import click

Row = Sequence[object]
COLUMN_GAP: Final = 3
SHORTEST_ID: Final = 13


def is_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(document: Any) -> None:
    """One document; `print_json_line` is for streams of them."""
    import json

    click.echo(json.dumps(document, indent=2, ensure_ascii=False, default=str))


def print_json_line(document: Any) -> None:
    import json

    sys.stdout.write(json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str) + "\n")


def print_table(
    columns: Sequence[str], rows: Sequence[Row], *, empty: str = "", ids: Collection[str] = ()
) -> None:
    """Numbers stand to the right. If there is no row, `empty` goes to stderr, so that a pipe stays clean.

    Nothing is folded: whoever has a narrow terminal still wants to copy a name. Only columns of `ids`, which
    machines have made, are shortened there.
    """
    if not rows:
        if empty:
            click.echo(empty, err=True)
        return
    numeric = [_is_numeric([row[at] for row in rows]) for at in range(len(columns))]
    if is_terminal():
        _print_rich(columns, rows, numeric, ids)
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
    return visible(str(value).replace("\n", " ")) or "-"


def _print_rich(
    columns: Sequence[str], rows: Sequence[Row], numeric: Sequence[bool], ids: Collection[str]
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    excess = sum(widths) + COLUMN_GAP * len(columns) - console.width
    for at, name in enumerate(columns):
        if name in ids and excess > 0:
            width = max(SHORTEST_ID, widths[at] - excess)
            excess -= max(0, widths[at] - width)
            cells = [[*row[:at], shortened(row[at], width), *row[at + 1 :]] for row in cells]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in cells:
        table.add_row(*map(Text, row))
    Console(width=console.width + max(0, excess)).print(table)


def shortened(text: str, width: int) -> str:
    """Both ends stay: clients put a name before their ids, and ids differ at the end."""
    if len(text) <= width:
        return text
    kept = width - 1
    return f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"


def _print_plain(columns: Sequence[str], rows: Sequence[Row], numeric: Sequence[bool]) -> None:
    lines = [list(columns), *([_text(value) for value in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    for line in lines:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def visible(text: str) -> str:
    """With what a terminal would obey, or what breaks a line, as an escape: clients choose ids and names."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def printable(data: bytes | None) -> str | None:
    """Bytes as text for JSON; what is not UTF-8 is escaped as \\xNN, never lost."""
    return None if data is None else data.decode("utf-8", "backslashreplace")
