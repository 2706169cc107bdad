"""Secrets come from files, and are shown to nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.connect.redaction import (
    SecretMissing,
    concealed,
    resolved,
    secrets_of,
    shown,
    with_hidden_kept,
)
from headrace.connect.settings import Kind, Setting, Settings

SETTINGS = Settings(Setting("pin", Kind.PASSWORD), Setting("token.count", Kind.INT, 1))


def test_declared_secrets_are_hidden_and_others_that_are_called_so() -> None:
    given = {"pin": "1234", "token.count": "5", "driver.password": "x", "file": "a"}
    assert shown(given, SETTINGS) == {
        "pin": "[hidden]", "token.count": "5", "driver.password": "[hidden]", "file": "a",
    }  # fmt: skip


def test_a_private_key_of_kafka_s_clients_is_hidden() -> None:
    given = {"source.ssl.keystore.key": "-----BEGIN", "source.ssl.keystore.location": "/run/a.pem"}
    assert shown(given, None) == {**given, "source.ssl.keystore.key": "[hidden]"}


def test_a_reference_is_no_secret() -> None:
    given = {"pin": "${file:/run/secrets:pin}"}
    assert shown(given, SETTINGS) == given


def test_what_was_hidden_comes_back_as_it_was() -> None:
    before = {"pin": "1234", "file": "a"}
    assert with_hidden_kept({"pin": "[hidden]", "file": "b"}, before, SETTINGS) == {
        "pin": "1234",
        "file": "b",
    }
    assert with_hidden_kept({"file": "[hidden]"}, before, SETTINGS) == {"file": "[hidden]"}
    assert with_hidden_kept({"pin": "[hidden]"}, None, SETTINGS) == {"pin": "[hidden]"}


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "db.properties"
    path.write_text("password=hunter22\nuser=me\n")
    given, secrets = resolved({"url": f"a:${{file:{path}:user}}/${{file:{path}:password}}", "b": "c"})
    assert given == {"url": "a:me/hunter22", "b": "c"}
    assert secrets == {"me", "hunter22"}


def test_a_secret_that_is_not_there_is_told_without_the_others(tmp_path: Path) -> None:
    path = tmp_path / "db.properties"
    path.write_text("password=hunter22\n")
    with pytest.raises(SecretMissing, match="no line pin") as raised:
        resolved({"a": f"${{file:{path}:pin}}"})
    assert "hunter22" not in str(raised.value)
    with pytest.raises(SecretMissing, match="cannot be read"):
        resolved({"a": f"${{file:{tmp_path}/none:pin}}"})


def test_traces_are_cleared() -> None:
    secrets = secrets_of({"pin": "12345", "file": "a"}, SETTINGS)
    assert concealed("login with 12345 failed", secrets) == "login with [hidden] failed"
    assert concealed("abc", ["ab"]) == "abc", "short ones are in any text by chance"
