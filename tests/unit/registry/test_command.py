"""`headrace registry` before it serves: what it says when something is missing."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from headrace.cli.registry import registry
from headrace.client.errors import ClientFailure
from headrace.core.errors import ConfigError


@pytest.mark.parametrize("name", ["uvicorn", "google", "fastavro"])
def test_extras_that_are_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    for loaded in [loaded for loaded in sys.modules if loaded.startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    result = CliRunner().invoke(registry, [])
    assert isinstance(result.exception, ClientFailure)
    assert name in str(result.exception)
    assert "headrace[registry]" in result.exception.hint


@pytest.mark.parametrize("listen", ["nonsense", ":", "127.0.0.1:", "127.0.0.1:99999"])
def test_an_address_that_is_none(listen: str) -> None:
    result = CliRunner().invoke(registry, ["--listen", listen])
    assert result.exit_code == 2
    assert "HOST:PORT" in result.output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--listen", "0.0.0.0:8081"], "set --authentication to basic, bearer or mtls"),
        (["--listen", "0.0.0.0:8081", "--authentication", "basic"], "write https:// before the address"),
        (["--listen", "https://0.0.0.0:8081", "--authentication", "basic"], "set ssl.keystore.location"),
        (["--authentication", "bearer"], "bearer needs --token-file"),
        (["--authentication", "digest"], "'digest' is not one of basic, bearer, mtls, none"),
    ],
)
def test_a_start_without_protection_stops_and_says_what_to_set(options: list[str], text: str) -> None:
    result = CliRunner().invoke(registry, options)
    assert isinstance(result.exception, ConfigError)
    assert text in str(result.exception)
