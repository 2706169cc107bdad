"""pytest's items of the pages' examples, by Sybil: `pytest -p tests.documents.plugin README.md docs`.

HEADRACE_SLOW_DOCUMENTS=1 runs the pages with blocks that need Spark or several processes, and those alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from sybil import Document, Example, Region, Sybil

from tests.documents.blocks import Block, Kind, blocks, steps
from tests.documents.comparison import answers, matches
from tests.documents.page_python import PagePython
from tests.documents.page_shell import ROOT, PageShell

_SLOW: Final = os.environ.get("HEADRACE_SLOW_DOCUMENTS") == "1"
_skipped: list[tuple[str, str]] = []
_later: list[str] = []
_run: list[str] = []


class BlockParser:
    """Every block of a page that is to run now; those that are not are counted."""

    def __call__(self, document: Document) -> Iterator[Region]:
        found = list(blocks(document.text))
        if _SLOW and not any(block.slow for block in found):
            return
        name = Path(document.path).relative_to(ROOT)
        for block in found:
            place = f"{name}:{document.text.count(chr(10), 0, block.start) + 1}"
            if block.reason is not None:
                _skipped.append((place, block.reason))
            elif block.slow and not _SLOW:
                _later.extend([] if block.hidden else [place])
            else:
                yield Region(block.start, block.end, block, self.evaluate)

    def evaluate(self, example: Example) -> str | None:
        """What went wrong. The rest of a page builds on what came before, so it ends with the first."""
        wrong = self._evaluate(example)
        if wrong is not None:
            example.namespace.setdefault("failed", example.line)
        return wrong

    def _evaluate(self, example: Example) -> str | None:
        block: Block = example.parsed
        if "failed" in example.namespace:
            return f"not run: line {example.namespace['failed']} of this page failed"
        shell, python = _page(example.namespace)
        if not block.hidden:
            _run.append(f"{example.path}:{example.line}")
        if block.kind is Kind.PYTHON:
            return python.run(block.code) or None
        if block.kind is Kind.SHELL:
            done = shell.run(block.code)
            return f"exit code {done.returncode}\n{done.stdout}" if done.returncode else None
        for command, expected in steps(block.code):
            done = shell.run(command, stdin=answers(expected), strict=False)
            if not matches(shell.localised(expected), done.stdout):
                return f"$ {command}\n--- the page says\n{expected}\n--- it printed\n{done.stdout}"
        return None


def _page(namespace: dict[str, Any]) -> tuple[PageShell, PagePython]:
    if "shell" not in namespace:
        namespace["shell"] = PageShell()
        namespace["python"] = PagePython(namespace["shell"])
    return namespace["shell"], namespace["python"]


def _close(namespace: dict[str, Any]) -> None:
    if "shell" in namespace:
        namespace["python"].close()
        namespace["shell"].close()


pytest_collect_file = Sybil(
    parsers=[BlockParser()], patterns=["*.md"], path=str(ROOT), teardown=_close
).pytest()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What did not run, and why: a count that grows is seen."""
    terminalreporter.section("examples of the documents")
    terminalreporter.write_line(
        f"{len(_run)} ran, {len(_skipped)} are skipped, {len(_later)} are left to `poe docs-run-spark`"
    )
    for place, reason in _skipped:
        terminalreporter.write_line(f"skipped {place}: {reason}")
