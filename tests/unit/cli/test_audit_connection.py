"""How `headrace audit run` connects: options, then lake.toml, then the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from headrace.cli.audit_run import _kafka
from headrace.cli.options import COMMAND_CONFIG, bootstrap_option
from headrace.spark.lake.config import LakeConfig, parse

_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        "bootstrap.servers=file:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config={_JAAS}\nssl.truststore.location=/ca.pem\n"
    )
    return path


def chosen(
    lake: LakeConfig | None, *options: str, environment: dict[str, str] | None = None
) -> Mapping[str, str]:
    found: list[Mapping[str, str]] = []

    @click.command()
    @bootstrap_option
    def probe(bootstrap: str) -> None:
        found.append(_kafka(bootstrap, lake))

    result = CliRunner().invoke(probe, options, env=environment)
    assert result.exit_code == 0, (result.output, result.exception)
    return found[0]


def lake() -> LakeConfig:
    text = (
        '[kafka]\n"bootstrap.servers" = "lake:1"\n"client.id" = "loader"\n'
        '[lake]\nlocation = "/data"\n[[topics]]\nname = "a"\n'
    )
    return parse(text, Path("/somewhere/lake.toml"))


def test_a_client_file_says_where_and_how(file: Path) -> None:
    for found in (
        chosen(None, "--command-config", str(file)),
        chosen(None, environment={COMMAND_CONFIG: str(file)}),
    ):
        assert found["bootstrap.servers"] == "file:1"
        assert found["security.protocol"] == "SASL_SSL"
    other = chosen(None, "--command-config", str(file), "--bootstrap", "other:1")
    assert (other["bootstrap.servers"], other["sasl.mechanism"]) == ("other:1", "PLAIN")


def test_lake_toml_comes_after_options_and_before_the_environment(file: Path) -> None:
    assert chosen(lake(), environment={COMMAND_CONFIG: str(file)}) == lake().kafka
    given = chosen(lake(), "--command-config", str(file))
    assert given["bootstrap.servers"] == "file:1"
    assert given["client.id"] == "loader"
    assert chosen(lake(), "--bootstrap", "other:1")["bootstrap.servers"] == "other:1"
