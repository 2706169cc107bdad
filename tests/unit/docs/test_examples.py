"""What `poe docs-run` makes of a page: which blocks are examples, and when a command printed what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents.blocks import Kind, Malformed, blocks, steps
from tests.documents.comparison import answers, matches

_ROOT = Path(__file__).parents[3]
_PAGES = sorted(
    [*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md"), *(_ROOT / "examples").glob("*/README.md")]
)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_a_page_can_be_run_and_its_reasons_name_what_exists(page: Path) -> None:
    for block in blocks(page.read_text()):
        for path in re.findall(r"\b(?:tests|docs|examples)/[\w./-]*\w", block.reason or ""):
            assert (_ROOT / path).exists(), f"{page.name}: {block.reason}"


def test_examples_are_blocks_of_shell_of_python_and_with_a_prompt() -> None:
    text = "```sh\na\n```\n```python\nb\n```\n```\n$ c\nd\n```\n```\nshown\n```\n```toml\ne\n```\n"
    assert [(block.kind, block.code) for block in blocks(text)] == [
        (Kind.SHELL, "a\n"),
        (Kind.PYTHON, "b\n"),
        (Kind.TRANSCRIPT, "$ c\nd\n"),
    ]


def test_a_comment_counts_for_the_next_block_alone() -> None:
    text = (
        "<!-- run: skip: there is no such host -->\n```sh\na\n```\n"
        "<!-- run: slow -->\n```sh\nb\n```\n```sh\nc\n```\n<!-- run: prepare slow python\nd\n-->\n"
    )
    found = list(blocks(text))
    assert [block.reason for block in found] == ["there is no such host", None, None, None]
    assert [block.slow for block in found] == [False, True, False, True]
    assert (found[3].kind, found[3].code) == (Kind.PYTHON, "d\n")


@pytest.mark.parametrize(
    "text",
    [
        "<!-- run: skip -->\n```sh\na\n```\n",
        "<!-- run: skip: later -->\n```sh\na\n```\n",
        "```\nheadrace up\n```\n",
    ],
)
def test_a_skip_needs_a_reason_and_a_command_a_language(text: str) -> None:
    with pytest.raises(Malformed):
        list(blocks(text))


def test_a_transcript_has_commands_and_what_each_prints() -> None:
    assert list(steps("$ a \\\n    b\nx\ny\n\n$ c\n")) == [("a \\\n    b", "x\ny"), ("c", "")]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a  b", "a b\n", True),
        ("a b", "a c", False),
        ("lag 5,289", "lag 5,288", False),
        ("at 2026-11-15T09:17:19+00:00 1m16s", "at 2026-11-18T18:28:52+00:00 1.6s", True),
        ("id=aeb23e65-0c3f-41d0-9d28-853935a739dd", "id=00000000-0c3f-41d0-9d28-853935a739dd", True),
        ("first\n...\nlast", "first\nsecond\nthird\nlast", True),
        ("first\n...\nlast", "first\nsecond", False),
        ("sure? [y/N]: y\ndone", "sure? [y/N]: done", True),
        ("sure? [y/N]: y\ndone", "sure? [y/N]: failed", False),
        ("", "something", False),
    ],
)
def test_what_is_printed_is_what_the_page_says(expected: str, printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_a_question_of_the_page_is_answered() -> None:
    assert answers("sure? [y/N]: y\ndone") == "y\n"
    assert answers("done") == ""
