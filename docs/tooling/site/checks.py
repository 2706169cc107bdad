"""What must hold of the built pages: nothing comes from another host, and every link leads somewhere.

Read from the HTML, not from the sources: what a theme or an extension adds counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOADED: Final = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}
"""What a browser fetches without being asked. A link that a reader follows may lead anywhere."""
_IN_STYLES: Final = re.compile(r"""(?:url\(|@import)\s*['"]?((?:https?:)?//[^'")\s;]+)""")
_NAMES: Final = frozenset(("canonical", "next", "prev", "search", "index"))
"""Relations of a `link` that name another page and load nothing."""


class Page(HTMLParser):
    """The ids of a page, what it loads, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and _NAMES.intersection(values.get("rel", "").split()):
            return
        for name in _LOADED.get(tag, ()):
            if name in values:
                found = values[name].split(",") if name == "srcset" else [values[name]]
                self.loaded += [entry.split()[0] for entry in found if entry.strip()]
        self.loaded += _IN_STYLES.findall(values.get("style", ""))


def foreign(directory: Path) -> Iterator[str]:
    """What pages and styles of the site load from another host."""
    for path in sorted(directory.rglob("*.html")):
        for target in _page(path).loaded:
            if _is_elsewhere(target):
                yield f"{path.relative_to(directory)}: {target}"
    for path in sorted(directory.rglob("*.css")):
        for target in _IN_STYLES.findall(path.read_text()):
            yield f"{path.relative_to(directory)}: {target}"


def broken(directory: Path) -> Iterator[str]:
    """Links and pictures inside the site that lead nowhere, fragments too."""
    for path in sorted(directory.rglob("*.html")):
        page = _page(path)
        for target in [*page.links, *page.loaded]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = path.parent / unquote(parts.path) if parts.path else path
            if not there.is_file() or (parts.fragment and unquote(parts.fragment) not in _ids(there)):
                yield f"{path.relative_to(directory)}: {target}"


def _ids(path: Path) -> set[str]:
    return _page(path.resolve()).ids if path.suffix == ".html" else set()


@cache
def _page(path: Path) -> Page:
    return Page(path.read_text())


def _is_elsewhere(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme in ("http", "https")
