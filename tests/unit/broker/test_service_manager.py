"""What systemd is told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.broker.process.service_manager import READY, SOCKET_VARIABLE, notify

PATIENCE_S = 60.0


def listening(address: str) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.settimeout(PATIENCE_S)
    receiver.bind(address)
    return receiver


def test_a_state_is_told_with_words(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as receiver:
        assert notify(READY, "serves", {SOCKET_VARIABLE: path})
        assert receiver.recv(1000) == b"READY=1\nSTATUS=serves"


def test_by_an_abstract_name() -> None:
    name = f"headrace-test-{os.getpid()}"
    with listening(f"\0{name}") as receiver:
        assert notify(READY, "serves", {SOCKET_VARIABLE: f"@{name}"})
        assert receiver.recv(1000) == b"READY=1\nSTATUS=serves"


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234"])
def test_nobody_wants_to_know(address: str | None) -> None:
    assert not notify(READY, "serves", {} if address is None else {SOCKET_VARIABLE: address})


def test_nobody_listens(tmp_path: Path) -> None:
    assert not notify(READY, "serves", {SOCKET_VARIABLE: str(tmp_path / "absent")})


def test_a_broker_says_when_it_serves_and_when_it_stops(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    settings = tmp_path / "server.properties"
    settings.write_text(f"broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\n")
    command = [sys.executable, "-m", "headrace", "broker", "--config", str(settings)]
    with listening(path) as receiver:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, SOCKET_VARIABLE: path}
        )
        try:
            ready = receiver.recv(1000).decode()
            assert process.stdout is not None
            bootstrap = process.stdout.readline().strip().removeprefix("ready bootstrap=")
            assert ready == f"READY=1\nSTATUS=serves at {bootstrap}"
            process.send_signal(signal.SIGTERM)
            assert receiver.recv(1000).startswith(b"STOPPING=1\n")
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.communicate()
