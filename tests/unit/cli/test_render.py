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


MEMBER = "rdkafka-6f1c2d3e-4b5a-6978-8a9b-0c1d2e3f4a5b"


def test_on_a_narrow_terminal_ids_are_shortened_and_names_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    topic = "a-topic-with-a-name-of-fifty-characters-" + "x" * 10
    render.print_table(("TOPIC", "LAG", "MEMBER"), [(topic, 12, MEMBER), ("b", 3, None)], ids=("MEMBER",))
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if topic in line]
    assert row.split() == [topic, "12", "rdkafka-6…2e3f4a5b"]
    assert max(map(len, lines)) <= 80


def test_a_row_that_cannot_fit_stays_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    render.print_table(("TOPIC", "MEMBER"), [("t" * 60, MEMBER)], ids=("MEMBER",))
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "t" * 60 in line]
    assert row.split() == ["t" * 60, "rdkafk…3f4a5b"]


def test_what_fits_is_not_shortened() -> None:
    assert render.shortened("abcdefg", 7) == "abcdefg"
    assert render.shortened("abcdefg", 6) == "abc…fg"


def test_a_terminal_is_told_nothing_by_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    render.print_table(("GROUP",), [("a\x1b]0;owned\x07\r\nb\u202e\x9b",)])
    assert capsys.readouterr().out == "GROUP\na\\x1b]0;owned\\x07\\r b\\u202e\\x9b\n"
    assert render.visible("é ok") == "é ok"
