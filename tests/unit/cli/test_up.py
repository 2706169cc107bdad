"""What `headrace up` gives each broker, and what it says when they serve."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from headrace.cli import up as command
from headrace.cli.main import cli


def given(monkeypatch: pytest.MonkeyPatch, *args: str) -> dict[str, str]:
    """The properties of the one broker."""
    served: list[dict[str, str]] = []

    def serve(properties: dict[str, str], _: object) -> int:
        served.append(properties)
        return 0

    monkeypatch.setattr(command, "serve", serve)
    result = CliRunner().invoke(cli, ["up", *args])
    assert result.exit_code == 0, result.output
    (properties,) = served
    return properties


def test_groups_do_not_wait_unless_they_are_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "group.initial.rebalance.delay.ms"
    assert given(monkeypatch)[name] == "0"
    assert given(monkeypatch, "--override", f"{name}=3000")[name] == "3000"


def test_metrics_have_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "headrace.metrics.listener"
    assert name not in given(monkeypatch)
    assert given(monkeypatch, "--metrics", "9102")[name] == "127.0.0.1:9102"
    assert given(monkeypatch, "--metrics", "0")[name] == "127.0.0.1:0"


def test_ports_of_metrics_count_up_and_overrides_are_for_all() -> None:
    assert command._more(2, 9102, {"num.partitions": "3"}) == [
        {"headrace.metrics.listener": "127.0.0.1:9102", "num.partitions": "3"},
        {"headrace.metrics.listener": "127.0.0.1:9103", "num.partitions": "3"},
    ]


@pytest.mark.parametrize(
    ("bootstrap", "address"),
    [("127.0.0.1:9092", ""), ("127.0.0.1:19092,127.0.0.1:19093", " -b 127.0.0.1:19092")],
)
def test_a_person_is_told_what_to_do_next(
    bootstrap: str, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command._ready_with_next_steps(bootstrap)
    assert capsys.readouterr() == (f"ready bootstrap={bootstrap}\n", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command._ready_with_next_steps(bootstrap)
    out, err = capsys.readouterr()
    assert out == f"ready bootstrap={bootstrap}\n"
    assert f"  headrace consume greetings{address}\n" in err
