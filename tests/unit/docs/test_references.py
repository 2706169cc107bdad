"""Every module, test and page that a document names exists: a reader who looks for one finds it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[3]
_FOLDERS: Final = (
    *(".ci", ".github", "bench", "codegen", "deploy", "docs", "examples", "release", "src", "tests"),
    "third_party_clients",
)
_LEFT: Final = frozenset((".venv", "__pycache__", "node_modules", "target"))
_QUOTED: Final = re.compile(r"`([^`\n]+)`")
_PLACE: Final = re.compile(r"([\w./-]+\.(?:py|md|sh))?(?:::([\w:]+)(?:\[.*\])?)?")
"""A path, a test of it, or a test alone, which is one of the path before it."""
_INSIDE: Final = re.compile(r"`([\w./-]+\.py)` \(((?:`[^`\n]+`(?:, | and )?)+)\)")
"""A module, and in brackets what of it."""
_EXAMPLE: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_TESTS: Final = re.compile(r"`([\w./-]+\.py)`: ((?:`test_\w+`(?:, )?)+)")
"""A file of tests, and which of it."""
_ROW: Final = re.compile(r"\| [TL]\d+ \|.*")
_LINK: Final = re.compile(r"\]\(([^)\s#]+)(?:#[\w-]*)?\)")


@cache
def _files() -> tuple[str, ...]:
    """Not what a build or a tool has left."""
    found = [*_ROOT.iterdir(), *(path for folder in _FOLDERS for path in (_ROOT / folder).rglob("*"))]
    names = (path.relative_to(_ROOT) for path in found if path.is_file())
    return tuple(sorted(str(name) for name in names if not _LEFT.intersection(name.parts)))


@cache
def _defines(name: str, what: str) -> bool:
    return re.search(rf"\b(?:def|class) {re.escape(what)}\b", (_ROOT / name).read_text()) is not None


def _documents() -> list[str]:
    return [name for name in _files() if name.endswith(".md")]


def missing(text: str, folder: Path) -> list[str]:
    """What a text names that is not there. Paths may begin in any folder of the project."""
    found = []
    named: list[str] = []
    for quoted in _QUOTED.findall(text):
        place = _PLACE.fullmatch(quoted)
        if place is None:
            continue
        path, what = place.group(1), place.group(2)
        if path is not None:
            path = path.removeprefix("./")
            named = [name for name in _files() if name == path or name.endswith(f"/{path}")]
        if not named or (what and not any(_defines(name, what.rpartition(":")[2]) for name in named)):
            found.append(quoted)
    for path, words in _INSIDE.findall(text):
        files = [name for name in _files() if name == path or name.endswith(f"/{path}")]
        for word in _QUOTED.findall(words):
            last = word.rstrip("()").rpartition(".")[2]
            if not any(re.search(rf"\b{re.escape(last)}\b", (_ROOT / name).read_text()) for name in files):
                found.append(f"{path} ({word})")
    for path, words in _TESTS.findall(text):
        files = [name for name in _files() if name == path or name.endswith(f"/{path}")]
        found += [
            f"{path}: {test}"
            for test in _QUOTED.findall(words)
            if not any(_defines(name, test) for name in files)
        ]
    # What looks like a link in an example is none.
    links = _LINK.findall(_EXAMPLE.sub("", text))
    return found + [link for link in links if "://" not in link and not (folder / link).exists()]


@pytest.mark.parametrize("document", _documents())
def test_what_a_document_names_is_there(document: str) -> None:
    assert missing((_ROOT / document).read_text(), (_ROOT / document).parent) == []


def test_every_threat_has_a_test_and_every_test_its_file() -> None:
    text = (_ROOT / "docs/threats.md").read_text()
    rows = _ROW.findall(text)
    assert [row.split()[1] for row in rows] == [
        *(f"T{number}" for number in range(1, 31)),
        *(f"L{number}" for number in range(1, 7)),
    ]
    assert [row for row in rows if _TESTS.search(row) is None] == []
    with_file = {test for _, words in _TESTS.findall(text) for test in _QUOTED.findall(words)}
    assert {name for name in _QUOTED.findall(text) if name.startswith("test_")} == with_file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("`unit/docs/test_references.py::test_what_a_document_names_is_there`", 0),
        ("`unit/docs/test_references.py::test_that_never_was`", 1),
        ("`unit/docs/test_references.py`, `::missing`, `::never_was`", 1),
        ("`never/was.py`", 1),
        ("`unit/docs/test_references.py` (`missing`, `_files`)", 0),
        ("`unit/docs/__init__.py` (`missing`)", 1),
        ("`unit/docs/test_references.py`: `test_what_is_not_there_is_noticed`", 0),
        ("`unit/docs/test_references.py`: `test_what_is_not_there_is_noticed`, `test_that_never_was`", 1),
        ("`unit/docs/__init__.py`: `test_what_is_not_there_is_noticed`", 1),
        ("[a page](never_was.md#part)", 1),
        ("```\n[1:$1](never_was)\n```\n", 0),
        ("```\nx\n```\n[a page](never_was.md)\n```\nx\n```\n", 1),
        ("[a page](test_references.py), [elsewhere](https://example.org/never_was.md)", 0),
    ],
)
def test_what_is_not_there_is_noticed(text: str, told: int) -> None:
    assert len(missing(text, Path(__file__).parent)) == told
