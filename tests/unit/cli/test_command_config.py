"""`--command-config`: every command that speaks to brokers takes Kafka's client properties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.client import cluster
from headrace.client.link import TcpDialer
from headrace.client.security import ClientSecurity

CANARY = "canary-c7e2"


def run(*args: str, **options: Any) -> Result:
    return CliRunner().invoke(cli, args, prog_name="headrace", **options)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[ClientSecurity]:
    """How each client wanted to connect."""
    seen: list[ClientSecurity] = []

    def dialer_of(security: ClientSecurity) -> TcpDialer:
        seen.append(security)
        return TcpDialer()

    monkeypatch.setattr(cluster, "dialer_of", dialer_of)
    return seen


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.location=/ca.pem\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n"
        f'  username="alice" password="{CANARY}";\n'
    )
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        ("topic", "list"),
        ("group", "list"),
        ("produce", "t"),
        ("consume", "t"),
        ("cluster", "status"),
        ("config", "get", "--topic", "t", "retention.ms"),
    ],
)
def test_it_reaches_the_client(command: tuple[str, ...], file: str, dialled: list[ClientSecurity]) -> None:
    result = run(*command, "-b", "127.0.0.1:1", "--command-config", file, input="x\n")
    assert result.exit_code == 1, result.output
    assert {security.protocol for security in dialled} == {"SASL_SSL"}
    assert CANARY not in result.output + result.stderr


def test_it_comes_from_the_environment(file: str, dialled: list[ClientSecurity]) -> None:
    run("topic", "list", "-b", "127.0.0.1:1", env={"HEADRACE_COMMAND_CONFIG": file})
    assert [security.protocol for security in dialled] == ["SASL_SSL"]


def test_one_command_leaves_nothing_to_the_next(file: str, dialled: list[ClientSecurity]) -> None:
    run("topic", "list", "-b", "127.0.0.1:1", "--command-config", file)
    run("topic", "list", "-b", "127.0.0.1:1")
    assert [security.protocol for security in dialled] == ["SASL_SSL", "PLAINTEXT"]


def test_a_wrong_file_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"sasl.password={CANARY}\n")
    result = run("topic", "list", "--command-config", str(path))
    assert result.exit_code == 1
    assert "sasl.password is not a property of Kafka: set sasl.jaas.config" in result.stderr
    assert CANARY not in result.stderr


def test_its_brokers_count_unless_others_are_named(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("bootstrap.servers=127.0.0.1:1\n")
    assert "127.0.0.1:1:" in run("topic", "list", "--command-config", str(path)).stderr
    assert "127.0.0.1:2:" in run("topic", "list", "-b", "127.0.0.1:2", "--command-config", str(path)).stderr
    named = {"HEADRACE_BOOTSTRAP": "127.0.0.1:3"}
    assert "127.0.0.1:3:" in run("topic", "list", "--command-config", str(path), env=named).stderr


def test_every_command_with_a_bootstrap_takes_it() -> None:
    def commands(group: click.Group, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], set[str]]]:
        found = []
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                found += commands(command, (*path, name))
            else:
                options = {option for each in command.params for option in each.opts}
                found.append(((*path, name), options))
        return found

    every = commands(cli, ())
    with_bootstrap = [path for path, options in every if "-b" in options]
    assert len(with_bootstrap) > 20
    without = [path for path, options in every if "-b" in options and "--command-config" not in options]
    assert without == []
