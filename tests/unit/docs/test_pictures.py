"""Pictures of a document are there, for light and for dark pages, and say in words what they show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[3]
_PICTURE: Final = re.compile(r"<picture>(.*?)</picture>", re.DOTALL)
_FILE: Final = re.compile(r'(?:src|srcset)="([^"]+)"')
_DARK: Final = re.compile(r'<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)-dark\.svg">')
_LIGHT: Final = re.compile(r'<img src="([^"]+)-light\.svg" alt="[^"]{20,}">')


def wrong(text: str, folder: Path) -> list[str]:
    found = [name for name in _FILE.findall(text) if "://" not in name and not (folder / name).exists()]
    for picture in _PICTURE.findall(text):
        dark, light = _DARK.search(picture), _LIGHT.search(picture)
        if dark is None or light is None or dark.group(1) != light.group(1):
            found.append(picture.strip())
    return found


@pytest.mark.parametrize("document", ["README.md", "docs/benchmarks.md"])
def test_pictures_of_a_document_are_there(document: str) -> None:
    text = (_ROOT / document).read_text()
    assert _PICTURE.search(text) is not None
    assert wrong(text, (_ROOT / document).parent) == []


_GOOD: Final = (
    '<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="docs/img/first-minute-dark.svg">\n'
    '  <img src="docs/img/first-minute-light.svg" alt="what the picture shows, in words">\n</picture>'
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (_GOOD, 0),
        (_GOOD.replace("first-minute-dark", "bench-cpu-dark"), 1),
        (_GOOD.replace("what the picture shows, in words", ""), 1),
        (_GOOD.replace("first-minute", "never-was"), 2),
    ],
)
def test_what_is_wrong_is_noticed(text: str, count: int) -> None:
    assert len(wrong(text, _ROOT)) == count
