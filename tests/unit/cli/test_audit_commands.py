"""`headrace audit run` before Spark starts; `retire` and `wait` without a broker."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest
from click.testing import CliRunner, Result

from headrace.audit import event
from headrace.audit.event import Event
from headrace.audit.verdict import State, Verdict
from headrace.cli.main import cli
from headrace.client.errors import ConnectionLost, Unreachable
from headrace.spark.audit.config import AuditConfig, AuditRefused
from headrace.spark.audit.job import PassResult
from tests.unit.cli.serving import runner

_WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None; from headrace.cli.main import main; main()"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("books", "file://{here}/books"),
        ("/data/audit/", "file:///data/audit"),
        ("s3a://b/audit", "s3a://b/audit"),
    ],
)
def test_the_state_is_a_place_that_spark_can_find(
    said: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[AuditConfig] = []

    def auditor(_spark: object, config: AuditConfig) -> None:
        given.append(config)
        raise AuditRefused("that is enough")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("headrace.spark.sessions.session", Mock())
    monkeypatch.setattr("headrace.spark.audit.job.Auditor", auditor)
    CliRunner().invoke(cli, ["audit", "run", "orders", "--state", said])
    assert [config.state for config in given] == [meant.format(here=tmp_path.resolve())]


_LAKE = """
[kafka]
"bootstrap.servers" = "lake:9092"
"client.id" = "loader"
[lake]
format = "iceberg"
location = "/data/lake"
[[topics]]
name = "orders"
[spark]
master = "spark://there:7077"
"""


@pytest.mark.parametrize(("option", "brokers"), [((), "lake:9092"), (("--bootstrap", "b:1"), "b:1")])
def test_a_lake_is_looked_for_where_its_file_says(
    option: tuple[str, ...], brokers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auditor = Mock(side_effect=AuditRefused("that is enough"))
    session_for, other = Mock(), Mock(side_effect=AssertionError("the session of another lake"))
    monkeypatch.setattr("headrace.spark.lake.sessions.session_for", session_for)
    monkeypatch.setattr("headrace.spark.sessions.session", other)
    monkeypatch.setattr("headrace.spark.audit.job.Auditor", auditor)
    monkeypatch.setenv("HEADRACE_BOOTSTRAP", "elsewhere:9092")
    (tmp_path / "lake.toml").write_text(_LAKE)
    arguments = ("--state", "/books", "--lake-config", str(tmp_path / "lake.toml"), "--master", "local[1]")
    CliRunner().invoke(cli, ["audit", "run", "orders", *arguments, *option])
    ((spark, config), _) = auditor.call_args
    assert config.kafka == {"bootstrap.servers": brokers, "client.id": "loader"}
    ((lake,), more) = session_for.call_args
    assert (lake.location, more["master"]) == ("file:///data/lake", "local[1]")
    assert spark is session_for.return_value
    spark.stop.assert_called_once()


def test_one_pass_says_what_it_counts_and_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --json too, where standard output has nothing but verdicts."""
    found = PassResult(step=0, verdicts=(), news=(), records=7, events=2, gone={}, seconds=1.5)
    monkeypatch.setattr("headrace.spark.sessions.session", Mock())
    monkeypatch.setattr("headrace.spark.audit.job.Auditor", lambda *_: Mock(run_once=lambda: found))
    arguments = ["audit", "run", "orders", "--state", str(tmp_path), "--once"]
    pass_line = "pass 0: 7 records, 2 events in 1.5s; no window is over yet"
    told = CliRunner().invoke(cli, arguments)
    assert (told.exit_code, told.stdout.splitlines()) == (0, [pass_line])
    assert told.stderr.splitlines() == ["counting orders"]
    told = CliRunner().invoke(cli, [*arguments, "--json"])
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr.splitlines() == ["counting orders", pass_line]


def retired(monkeypatch: pytest.MonkeyPatch, *ages_ms: int, at: str = "now") -> tuple[Result, list[Any]]:
    """Retire producers that were heard so long ago; what was told to the audit."""
    now = time.time_ns() // 1_000_000
    sender = AsyncMock()

    async def last_events(*_: object) -> dict[str, tuple[Event, int]]:
        return {
            f"{age}": (Event("p", f"{age}", "s", 0, 7, now - age, 0, 1_000, 1_000), now - age)
            for age in ages_ms
        }

    monkeypatch.setattr("headrace.cli.audit_retire._last_events", last_events)
    monkeypatch.setattr("headrace.cli.audit_retire.with_cluster", lambda _, work: asyncio.run(work(Mock())))
    monkeypatch.setattr("headrace.cli.audit_retire.Producer", lambda _: sender)
    result = CliRunner().invoke(cli, ["audit", "retire", "p", "--at", at], prog_name="headrace")
    return result, [event.decode_retirement(call.args[1].value) for call in sender.send.call_args_list]


def test_who_was_just_heard_is_not_retired(monkeypatch: pytest.MonkeyPatch) -> None:
    result, told = retired(monkeypatch, 100_000, 9_000)
    assert (result.exit_code, [name for name, _ in told]) == (0, ["100000"])
    assert "p on s is retired" in result.stdout
    assert "p on s was heard" in result.stderr
    result, told = retired(monkeypatch, 9_000)
    assert (result.exit_code, told) == (1, [])
    assert "was heard" in result.stderr


def test_nobody_is_retired_before_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    before = time.time_ns() // 1_000_000
    _, told = retired(monkeypatch, 100_000, at="0")
    assert told[0][1] >= before - 100_000


@pytest.mark.parametrize(
    ("window", "says"), [("2026-11-15T10:00", "nothing listens at 127.0.0.1:1"), ("today", "is not a moment")]
)
def test_what_hinders_waiting_is_no_verdict(window: str, says: str) -> None:
    ended = runner("127.0.0.1:1")("audit", "wait", "orders", window, "--timeout", "100ms", code=3)
    assert says in ended.stderr


def test_who_does_not_answer_says_nothing_of_a_window() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        bootstrap = f"127.0.0.1:{deaf.getsockname()[1]}"
        ended = runner(bootstrap)("audit", "wait", "orders", "0", "--timeout", "100ms", code=3)
    assert "no broker answered" in ended.stderr


def test_waiting_goes_on_while_a_broker_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    certified = Verdict("orders", 0, 60_000, State.CERTIFIED, {})
    failures = [ConnectionLost("it went away"), Unreachable("b", 1)]

    async def follow(_self: object) -> AsyncIterator[dict[tuple[str, int], Verdict]]:
        if failures:
            raise failures.pop()
        yield {("orders", 0): certified}

    monkeypatch.setattr("headrace.audit.verdict_topic.VerdictReader.follow", follow)
    monkeypatch.setattr("headrace.cli.audit_wait.connect", MagicMock())
    monkeypatch.setattr("headrace.cli.audit_wait.SECONDS_BETWEEN", 0)
    ended = runner("b:1")("audit", "wait", "orders", "0")
    assert "certified" in ended.stdout
    assert ended.stderr.count("trying again") == 2


@pytest.mark.parametrize("error", [AuditRefused("no"), RuntimeError("no")])
def test_a_pass_that_fails_is_no_difference(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.spark.sessions.session", Mock())
    monkeypatch.setattr("headrace.spark.audit.job.Auditor", Mock(side_effect=error))
    ended = runner("b:1")("audit", "run", "orders", "--state", "/books", "--once", code=3)
    assert "error: no" in ended.stderr


def test_without_spark_it_is_said_what_to_install() -> None:
    command = [sys.executable, "-c", _WITHOUT_SPARK, "audit", "run", "orders", "--state", "books"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: pyspark")
    assert line.endswith(" is not installed: the audit needs `pip install 'headrace[spark]'`")
