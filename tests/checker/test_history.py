"""Histories are kept as JSON lines, and a run that was cut off can still be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.checker.history import Assign, History, Outcome, Poll, Send, Subscribe


def _some_history() -> History:
    history = History()
    first = history.invoke("a", "send", [Send("t-0", 1)])
    second = history.invoke("b", "transaction", [Send("t-0", "x"), Poll()])
    history.fail(second, "refused", [Send("t-0", "x"), Poll({"t-0": [(0, 1)]}, rebalanced=("t-0",))])
    history.ok(first, [Send("t-0", 1, 0)])
    history.ok(history.invoke("b", "assign", [Assign(("t-0",), True, "mine"), Subscribe(("t",), "ours")]))
    history.invoke("a", "send", [Send("t-0", 2)])
    return history


def test_a_history_is_written_and_read_again(tmp_path: Path) -> None:
    history = _some_history()
    history.write(tmp_path / "history.jsonl")
    again = History.read(tmp_path / "history.jsonl")
    assert again.operations == history.operations
    assert again.order_of_ends == history.order_of_ends


def test_what_never_ended_is_unknown() -> None:
    last = _some_history().operations[-1]
    assert last.outcome is Outcome.UNKNOWN
    assert not last.ended


def test_a_line_that_was_cut_off_never_happened(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    _some_history().write(path)
    whole = path.read_text()
    path.write_text(whole[:-5])
    assert len(History.read(path).order_of_ends) == len(_some_history().order_of_ends) - 1


def test_events_are_told_as_they_happen() -> None:
    told: list[dict[str, Any]] = []
    times = iter(range(100))
    history = History(clock=lambda: float(next(times)), on_event=told.append)
    history.unknown(history.invoke("a", "send", [Send("t-0", 1)]), "time is over")
    assert [event["event"] for event in told] == ["invoke", "unknown"]
    copy = History()
    for event in told:
        copy.apply(json.loads(json.dumps(event)))
    assert copy.operations == history.operations


def test_an_operation_ends_once() -> None:
    history = History()
    operation = history.invoke("a", "send", [Send("t-0", 1)])
    history.ok(operation)
    with pytest.raises(ValueError):
        history.unknown(operation)
