"""Where in a TOML file a key stands. The standard parser does not say, and an error should."""

from __future__ import annotations

import re
from typing import Final

#: The way to a key: table names, and the number of the element in an array of tables.
Path = tuple[str | int, ...]

_HEADER: Final = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY: Final = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.-]+)\s*=""")
_FENCES: Final = ('"""', "'''")


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of each key and of each table's header."""
    lines: dict[Path, int] = {}
    counts: dict[str, int] = {}
    section: Path = ()
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if fence in line:
                fence = ""
            continue
        if header := _HEADER.fullmatch(line):
            name = header[2]
            section = tuple(part.strip("\"' ") for part in name.split("."))
            if header[1] == "[[":
                counts[name] = counts.get(name, -1) + 1
                section = (*section, counts[name])
            lines.setdefault(section, number)
        elif key := _KEY.match(line):
            lines.setdefault((*section, *_parts(key[1])), number)
            fence = next((each for each in _FENCES if line.count(each) % 2), "")
    return lines


def _parts(key: str) -> Path:
    if key[0] in "\"'":
        return (key[1:-1],)
    return tuple(key.split("."))


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """Of the key itself, or of what it would stand in."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None
