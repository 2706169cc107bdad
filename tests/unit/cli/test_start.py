"""A command costs what it imports. That is counted here, because seconds depend on the machine."""

from __future__ import annotations

import gc
import subprocess
import sys
from importlib import import_module
from typing import Final

import pytest

from headrace.cli.main import cli
from headrace.cli.uncollected import uncollected

MOST_OF_OURS: Final = 44
"""Modules of Headrace for a command with one question: the client, and the messages of three requests."""
MOST_MESSAGES: Final = 6
NEEDLESS: Final = ("rich", "structlog", "dataclasses", "json", "tempfile", "zoneinfo", "cryptography")


def in_python(code: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def loaded() -> list[str]:
    """By `headrace topic list`, apart from what Python has for whoever speaks by sockets."""
    return in_python(
        "import asyncio, sys; before = set(sys.modules)\n"
        "from click import Context; from headrace.cli.main import cli\n"
        "topic = cli.get_command(Context(cli), 'topic')\n"
        "topic.get_command(Context(topic), 'list')\n"
        "print(*(name for name in sys.modules if name not in before), sep='\\n')"
    )


def test_a_command_with_one_question_imports_little(loaded: list[str]) -> None:
    ours = [name for name in loaded if name.partition(".")[0] == "headrace"]
    messages = [name for name in ours if name.startswith("headrace.protocol.messages.")]
    assert "headrace.protocol.messages.metadata_response" in messages
    assert len(messages) <= MOST_MESSAGES, messages
    assert len(ours) <= MOST_OF_OURS, ours


@pytest.mark.parametrize("name", NEEDLESS)
def test_a_command_with_one_question_does_not_import(loaded: list[str], name: str) -> None:
    assert name not in loaded


def test_the_collector_rests_while_a_command_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def looking(name: str) -> object:
        seen.append(gc.isenabled())
        return import_module(name)

    monkeypatch.setattr("headrace.cli.lazy_group.import_module", looking)
    cli.get_command(cli.make_context("headrace", ["up"]), "up")
    assert seen == [False]
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("arguments", [("--version",), ("topic", "nonsense")])
def test_nothing_is_looked_through_at_the_end(arguments: tuple[str, ...]) -> None:
    code = (
        "import atexit, gc, sys; from headrace.cli.main import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count()))\n"
        "try: main()\n"
        "except SystemExit: pass"
    )
    assert int(in_python(code, *arguments)[-1]) > 1000
