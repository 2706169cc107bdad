"""`headrace up --secure`: nobody is told that it is ready before the administrator can log in."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.broker.process.local_security import LocalSecurity
from headrace.cli.up_secure import Protected, protection
from headrace.client.errors import ClientFailure


class Administrator(LocalSecurity):
    """Is created as a test says."""

    def __init__(self, directory: Path, outcome: bool | Exception) -> None:
        super().__init__(directory)
        self.outcome = outcome
        self.asked: list[str] = []

    def ensure_admin(self, bootstrap: str) -> bool:
        self.asked.append(bootstrap)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def serve(security: LocalSecurity) -> int:
    def run(on_ready: Callable[[str], None]) -> int:
        before = set(threading.enumerate())
        on_ready("127.0.0.1:9092")
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
        return 0

    return Protected(security, [1], [9092], [9093]).serve(run)


def test_the_next_commands_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    security = Administrator(tmp_path, True)
    assert serve(security) == 0
    told = capsys.readouterr()
    assert security.asked == ["127.0.0.1:9092"]
    assert told.out == "ready bootstrap=127.0.0.1:9092\n"
    lines = told.err.splitlines()
    assert str(tmp_path / "client.properties") in lines[0]
    assert [line.split()[:3] for line in lines[-2:]] == [
        ["headrace", "user", "create"],
        ["headrace", "acl", "grant"],
    ]


def test_a_lost_password_has_a_cure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(Administrator(tmp_path, False)) == 0
    told = capsys.readouterr()
    assert told.out.startswith("ready ")
    assert "headrace user passwd admin --command-config" in told.err
    assert str(tmp_path / "certs" / "admin.properties") in told.err


def test_without_an_administrator_it_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: signals.append((pid, number)))
    assert serve(Administrator(tmp_path, ClientFailure("no controller"))) == 1
    assert signals == [(os.getpid(), signal.SIGTERM)]
    told = capsys.readouterr()
    assert told.out == ""
    assert "error: the administrator could not be created: no controller" in told.err


def test_ports_for_brokers_follow_those_for_clients(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        protected = protection(tmp_path, [1, 2, 3], 19092, True)
    finally:
        mask = os.umask(before)
    assert mask == 0o077  # the metadata holds credentials
    assert protected is not None
    assert protected.ports == [19092, 19093, 19094]
    assert [each["listeners"] for each in protected.properties] == [
        f"SASL_SSL://127.0.0.1:{port},SSL://127.0.0.1:{port + 3}" for port in (19092, 19093, 19094)
    ]


def test_without_the_option_nothing_is_made(tmp_path: Path) -> None:
    assert protection(tmp_path, [1], 9092, False) is None
    assert list(tmp_path.iterdir()) == []
