"""What a shell offers after Tab."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from headrace.cli.main import cli
from tests.unit.cli.serving import serving
from tests.unit.client.scripted_groups import ScriptedGroup
from tests.unit.client.scripted_transactions import ScriptedTransaction, ScriptedTransactions


def offered(*words: str) -> list[str]:
    shell = ShellComplete(cli, {}, "headrace", "_HEADRACE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


def test_names_of_groups_topics_and_transactions() -> None:
    broker = ScriptedTransactions()
    broker.topics = {"orders": 1, "clicks": 1}
    broker.groups = {"billing": ScriptedGroup(), "books": ScriptedGroup(), "audit": ScriptedGroup()}
    broker.transactions = {"pay-2": ScriptedTransaction(), "pay-4": ScriptedTransaction()}
    with serving(broker):
        before = ("-b", broker.address)
        assert offered("group", "lag", *before, "b") == ["billing", "books"]
        assert offered("group", "lag", *before, "books", "b") == ["billing"]
        assert offered("group", "reset", *before, "billing", "--topic", "o") == ["orders"]
        assert offered("txn", "describe", *before, "") == ["pay-2", "pay-4"]


def test_without_a_broker_nothing_is_offered_and_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert offered("group", "lag", "-b", "127.0.0.1:1", "") == []
    assert offered("group", "lag", "-b", "no address", "") == []
    assert capsys.readouterr() == ("", "")


def test_topics_wherever_one_is_named() -> None:
    broker = ScriptedTransactions()
    broker.topics = {"orders": 1, "clicks": 1}
    with serving(broker):
        before = ("-b", broker.address)
        for words in (
            ("produce", *before),
            ("consume", *before),
            ("topic", "describe", *before),
            ("topic", "alter", *before),
            ("topic", "delete", *before),
            ("topic", "trim", *before),
            ("topic", "offsets", *before),
            ("topic", "reassign", *before),
            ("topic", "elect-leaders", *before),
            ("config", "list", *before, "--topic"),
            ("config", "set", *before, "--topic"),
        ):
            assert offered(*words, "o") == ["orders"], words
        assert offered("topic", "create", *before, "o") == []
