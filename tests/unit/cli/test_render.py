from __future__ import annotations

import json

import pytest

from headrace.cli import render


def test_plain_columns_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(("NAME", "COUNT", "LIST"), [("a", 5, [1, 2]), ("longer", 1000, [])])
    assert capsys.readouterr().out == "NAME    COUNT  LIST\na           5  1,2\nlonger   1000  -\n"


def test_cells_stay_on_their_line(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(("A", "B"), [("x\ny", None), ("", True)])
    assert capsys.readouterr().out.splitlines() == ["A    B", "x y  -", "-    yes"]


def test_nothing_to_show_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(("A",), [], empty="nothing yet")
    assert capsys.readouterr() == ("", "nothing yet\n")


def test_a_terminal_gets_a_drawn_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "is_terminal", lambda: True)
    render.print_table(("NAME", "COUNT"), [("[bold]not markup", 5)])
    out = capsys.readouterr().out
    assert "[bold]not markup" in out
    assert "─" in out


def test_json_keeps_text_readable(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_json({"name": "é"})
    assert json.loads(capsys.readouterr().out) == {"name": "é"}
    render.print_json_line({"a": 1})
    assert capsys.readouterr().out == '{"a":1}\n'


def test_bytes_that_are_not_text_are_escaped() -> None:
    assert render.printable(b"a\xff") == "a\\xff"
    assert render.printable("é".encode()) == "é"
    assert render.printable(None) is None
