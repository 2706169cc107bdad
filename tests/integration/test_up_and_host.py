"""`headrace up --brokers N` and `headrace host`, as processes, from the first line to the last process."""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.broker.process.local_cluster import local_ports
from headrace.cli.main import cli
from headrace.testing.zookeeper import ZooKeeper
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath
from tests.cluster_process import eventually
from tests.zookeeper_server import CACHE

SECONDS = 240.0


@pytest.fixture(autouse=True)
def _zookeeper_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv(CLASSPATH_VARIABLE, find_classpath(CACHE))
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")


class Command:
    """A `headrace ...` in a process of its own; its lines, and the processes below it."""

    def __init__(self, *args: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli.main", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self.children: list[int] = []

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip())

    def line(self, beginning: str) -> str:
        deadline = time.monotonic() + SECONDS
        seen = []
        while time.monotonic() < deadline:
            try:
                seen.append(self._lines.get(timeout=0.1))
            except queue.Empty:
                assert self._process.poll() is None, seen
                continue
            if seen[-1].startswith(beginning):
                threads = Path(f"/proc/{self._process.pid}/task").glob("*/children")
                self.children = [int(child) for thread in threads for child in thread.read_text().split()]
                return seen[-1]
        raise AssertionError(f"no line begins with {beginning!r}: {seen}")

    def end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        code = self._process.wait(SECONDS)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever went wrong, nothing is left running, and nobody waits for what does not end."""
        for pid in self.children:
            if alive(pid) and "headrace.cli.main" in command_line(pid):
                os.kill(pid, signal.SIGKILL)
        if self._process.poll() is None:
            self.end(signal.SIGTERM)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run(bootstrap: str, *args: str, stdin: str | None = None) -> str:
    environment = {"HEADRACE_BOOTSTRAP": bootstrap}
    result = CliRunner().invoke(cli, args, input=stdin, env=environment, prog_name="headrace")
    assert result.exit_code == 0, (args, result.output, result.exception)
    return result.stdout


def wait_serving(address: str) -> None:
    """Until ZooKeeper answers: its JVM may take longer than a command has patience."""
    host, port = address.split(":")
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with socket.create_connection((host, int(port)), 5) as connection:
                connection.sendall(b"srvr")
                if b"Mode: " in connection.recv(4096):
                    return
        except OSError:
            pass
        assert time.monotonic() < deadline, f"no ZooKeeper at {address}"
        time.sleep(0.1)


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_a_local_cluster_keeps_its_data_and_leaves_nobody_behind(tmp_path: Path) -> None:
    up = ("up", "--brokers", "3", "--port", "0", "--dir", str(tmp_path), "--racks", "a,b,c")
    with Command(*up) as first:
        bootstrap = first.line("ready bootstrap=").partition("=")[2]
        assert len(bootstrap.split(",")) == 3
        assert len(first.children) == 4, "three brokers and a ZooKeeper"
        run(bootstrap, "topic", "create", "t")
        run(bootstrap, "produce", "t", stdin="a\nb\n")
        (victim,) = (pid for pid in first.children if "broker-2.properties" in command_line(pid))
        os.kill(victim, signal.SIGKILL)
        first.line("broker 2 ended with SIGKILL; it is started again in 0.2 s")
        first.line("broker 2 serves again at ")
        children = first.children
        assert first.end(signal.SIGINT) == 0
        assert not any(map(alive, children))
    with Command(*up) as second:
        bootstrap = second.line("ready bootstrap=").partition("=")[2]
        run(bootstrap, "cluster", "status", "--wait", "30")
        assert run(bootstrap, "consume", "t", "-e") == "a\nb\n"
        assert second.end(signal.SIGTERM) == 0


def test_the_console_beside_a_broker_shows_what_was_produced_and_ends_with_it(tmp_path: Path) -> None:
    with Command("up", "--port", "0", "--dir", str(tmp_path), "--console", "0") as up:
        bootstrap = up.line("ready bootstrap=").partition("=")[2]
        page = up.line("console at ").split()[-1]
        assert len(up.children) == 1
        run(bootstrap, "topic", "create", "t")
        run(bootstrap, "produce", "t", stdin="one\ntwo\n")

        def shown() -> bool:
            try:
                with urllib.request.urlopen(f"{page}/topics/t/records?format=json", timeout=60) as answer:
                    text = answer.read()
            except urllib.error.HTTPError:
                return False  # the console has not yet looked since the topic was made
            return b"one" in text and b"two" in text

        eventually(shown, SECONDS, "the console shows both records")
        assert up.end(signal.SIGINT) == 0
        assert not any(map(alive, up.children))


def test_a_zookeeper_that_dies_is_started_again(tmp_path: Path) -> None:
    with Command("up", "--brokers", "2", "--port", "0", "--dir", str(tmp_path)) as up:
        address = up.line("ZooKeeper serves at ").split()[-1]
        bootstrap = up.line("ready bootstrap=").partition("=")[2]
        (server,) = (pid for pid in up.children if "zoo.cfg" in command_line(pid))
        os.kill(server, signal.SIGKILL)
        up.line("ZooKeeper has ended; it is started again")
        wait_serving(address)
        run(bootstrap, "topic", "create", "after")
        assert up.end(signal.SIGTERM) == 0
        assert not any(map(alive, up.children))


def test_a_host_runs_one_broker_per_core_in_one_rack(tmp_path: Path) -> None:
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        port = local_ports(0, 1)[0]
        file = tmp_path / "server.properties"
        file.write_text(
            f"broker.id=100\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={tmp_path / 'data'}\n"
            f"zookeeper.connect={zookeeper.connect}/hosts\ncontrolled.shutdown.retry.backoff.ms=100\n"
        )
        with Command("host", "--config", str(file), "--brokers", "2", "--override", "broker.rack=h1") as host:
            bootstrap = host.line("ready bootstrap=").partition("=")[2]
            assert bootstrap == f"127.0.0.1:{port},127.0.0.1:{port + 1}"
            status = run(bootstrap, "cluster", "status")
            assert [line.split()[0] for line in status.splitlines()[2:4]] == ["100", "101"]
            assert status.count(" h1 ") == 2
            assert host.end(signal.SIGTERM) == 0
        assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["broker-100", "broker-101"]
