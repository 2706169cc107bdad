from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.core.build import this_build


def run(*args: str, **options: Any) -> Result:
    return CliRunner().invoke(cli, args, prog_name="headrace", **options)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_help_lists_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for name in (
        "up",
        "broker",
        "host",
        "cluster",
        "topic",
        "group",
        "txn",
        "config",
        "produce",
        "consume",
        "log",
        "lake",
        "spark",
        "completion",
    ):
        assert f"\n  {name} " in result.stdout


def test_version() -> None:
    assert run("--version").stdout == f"headrace, version {this_build()}\n"


@pytest.mark.parametrize(
    "command",
    [
        ("up",),
        ("broker",),
        ("host",),
        ("cluster", "status"),
        ("cluster", "drain"),
        ("cluster", "rebalance"),
        ("cluster", "unregister"),
        ("cluster", "recover-metadata"),
        ("topic", "reassign"),
        ("topic", "elect-leaders"),
        ("topic", "create"),
        ("topic", "list"),
        ("topic", "describe"),
        ("topic", "alter"),
        ("topic", "delete"),
        ("topic", "trim"),
        ("topic", "offsets"),
        ("group", "list"),
        ("group", "describe"),
        ("group", "lag"),
        ("group", "reset"),
        ("group", "delete"),
        ("group", "delete-offsets"),
        ("txn", "list"),
        ("txn", "describe"),
        ("txn", "find-hanging"),
        ("txn", "abort"),
        ("config", "list"),
        ("config", "get"),
        ("config", "set"),
        ("config", "unset"),
        ("produce",),
        ("consume",),
        ("log", "dump"),
        ("log", "adopt"),
        ("lake", "init"),
        ("lake", "run"),
        ("lake", "status"),
        ("lake", "replay"),
        ("lake", "maintain"),
        ("spark", "jars"),
        ("spark", "doctor"),
        ("completion",),
    ],
)
def test_every_command_has_help(command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage: headrace " + " ".join(command) in result.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("nope",),
        ("topic",),
        ("topic", "create"),
        ("topic", "create", "t", "--partitions", "0"),
        ("topic", "create", "t", "--config", "no-equals"),
        ("config", "list"),
        ("config", "list", "--topic", "t", "--broker", "1"),
        ("config", "list", "--group", "g", "--broker-default"),
        ("produce", "t", "--delimiter", ""),
        ("produce", "t", "-z", "brotli"),
        ("broker", "--config", "/no/such/file"),
        ("host", "--config", "/no/such/file"),
        ("up", "--racks", "a,b"),
        ("cluster", "drain"),
        ("cluster", "unregister", "first"),
        ("completion", "tcsh"),
    ],
)
def test_usage_errors_exit_with_2(args: tuple[str, ...]) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_usage_error_is_a_line_and_a_hint() -> None:
    result = run("topic", "create")
    assert result.stderr.splitlines() == [
        "error: Missing argument 'NAME...'.",
        "hint: `headrace topic create --help` shows its options",
    ]


def test_no_broker_is_a_line_and_a_hint() -> None:
    port = closed_port()
    result = run("topic", "list", "-b", f"127.0.0.1:{port}")
    assert result.exit_code == 1
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first == f"error: nothing listens at 127.0.0.1:{port}: is the broker running?"
    assert second.startswith("hint: start one with `headrace up`")


def test_bootstrap_comes_from_the_environment() -> None:
    port = closed_port()
    result = run("topic", "list", env={"HEADRACE_BOOTSTRAP": f"127.0.0.1:{port}"})
    assert str(port) in result.stderr


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("consume", "t", "-o", "banana"), "'banana' is not a place in a log"),
        (("consume", "t", "-f", "%q"), "%q is not a field"),
        (("topic", "list", "-b", "host:port"), "'host:port' is not an address"),
    ],
)
def test_failures_exit_with_1(args: tuple[str, ...], text: str) -> None:
    result = run(*args)
    assert result.exit_code == 1
    assert f"error: {text}" in result.stderr or text in result.stderr
    assert "hint: " in result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_headrace(shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_HEADRACE_COMPLETE" in result.stdout


def test_completion_completes() -> None:
    environment = {
        **os.environ,
        "_HEADRACE_COMPLETE": "bash_complete",
        "COMP_WORDS": "headrace topi",
        "COMP_CWORD": "1",
    }
    code = "from headrace.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "plain,topic\n"


def test_commands_import_only_what_they_need() -> None:
    code = (
        "import sys, json; import headrace.cli.main as m; from click import Context\n"
        "c = Context(m.cli); before = set(sys.modules)\n"
        "m.cli.get_command(c, 'broker'); m.cli.get_command(c, 'up')\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(json.loads(done.stdout))
    assert "headrace.cli.up" in loaded
    for name in (
        "rich",
        "asyncio",
        "lz4",
        "cramjam",
        "headrace.cli.topic",
        "headrace.protocol.records",
        "tempfile",
    ):
        assert name not in loaded


def test_a_defect_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("defect")

    monkeypatch.setattr("headrace.cli.topic_list.with_cluster", broken)
    result = run("topic", "list")
    assert isinstance(result.exception, ZeroDivisionError)


def test_os_errors_name_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "/data/x")

    monkeypatch.setattr("headrace.cli.topic_list.with_cluster", broken)
    result = run("topic", "list")
    assert result.exit_code == 1
    assert result.stderr == "error: /data/x: Permission denied\n"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--zookeeper", "zk:99999"), "--zookeeper: 'zk:99999' is not host:port"),
        (("--port", "65535"), "port 65535 leaves no room for 2 brokers"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_before_it_starts(args: tuple[str, ...], text: str) -> None:
    result = run("up", "--brokers", "2", *args)
    assert result.exit_code == 1
    assert f"error: {text}" in result.stderr


def test_the_data_of_one_broker_does_not_become_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    result = run("up", "--brokers", "2", "--dir", str(tmp_path))
    assert result.exit_code == 1
    assert "holds the data of a single broker" in result.stderr


def test_the_brokers_of_a_host_can_be_looked_at_before_they_run(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    text = (
        "# für alle\nbroker.id=10\nlisteners=PLAINTEXT://:9092\nlog.dirs=/data\nzookeeper.connect=zk:2181\n"
    )
    file.write_text(text, encoding="latin-1")  # as Java's tools write it
    result = run("host", "--config", str(file), "--brokers", "2", "--override", "broker.rack=r1", "--print")
    assert result.exit_code == 0
    second = dict(line.split("=", 1) for line in result.stdout.strip().split("\n\n")[1].splitlines())
    assert second == {
        "broker.id": "11",
        "listeners": "PLAINTEXT://127.0.0.1:9093",
        "log.dirs": "/data/broker-11",
        "zookeeper.connect": "zk:2181",
        "broker.rack": "r1",
    }
    assert run("host", "--config", str(file), "--brokers", "some").exit_code == 2


@pytest.mark.parametrize("command", ["broker", "host"])
def test_a_file_that_is_no_text_is_refused_in_one_line(tmp_path: Path, command: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text("broker.id=10\n", encoding="utf-16")
    result = run(command, "--config", str(file))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {file}: ")
    assert "save it as UTF-8" in result.stderr
    assert "Traceback" not in result.stderr
