"""The files of a user say the same to everybody who reads them, and nothing else shows the password."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.client_files import (
    Access,
    ClientFiles,
    java_properties,
    librdkafka_properties,
    spark_options,
    trusted_authority,
)
from headrace.client.errors import ClientFailure
from headrace.client.security import ClientSecurity
from headrace.config.properties_file import read_properties
from headrace.config.secret import Secret

CANARY = "canary-c7e2"
TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1)


def access(name: str = "alice", password: str = CANARY, trust: Path | None = None) -> Access:
    return Access("b1:9092,b2:9092", "SASL_SSL", "SCRAM-SHA-256", name, Secret(password), trust)


@given(TEXTS, TEXTS)
def test_any_name_and_password_survive_the_java_file(
    tmp_path_factory: pytest.TempPathFactory, name: str, password: str
) -> None:
    files = ClientFiles.beside(tmp_path_factory.mktemp("files") / "a.properties")
    files.write(access(name, password))
    # Java reads Latin-1: what is beyond ASCII has to be escaped.
    assert files.java.read_bytes().isascii()
    read = ClientSecurity.read(str(files.java))
    assert read.credentials is not None
    assert (read.credentials.username, read.credentials.password.reveal()) == (name, password)
    assert f"sasl.password={password}\n".encode() in files.librdkafka.read_bytes()


def test_the_three_say_the_same(tmp_path: Path) -> None:
    trust = tmp_path / "ca.pem"
    java, librdkafka = java_properties(access(trust=trust)), librdkafka_properties(access(trust=trust))
    for name in ("bootstrap.servers", "security.protocol", "sasl.mechanism"):
        assert java[name] == librdkafka[name]
    assert java["ssl.truststore.location"] == librdkafka["ssl.ca.location"] == str(trust)
    assert spark_options(access(trust=trust)) == {f"kafka.{name}": value for name, value in java.items()}
    assert "ssl.ca.location" not in librdkafka_properties(access())


def test_spark_reads_its_file_as_the_file_says(tmp_path: Path) -> None:
    files = ClientFiles.beside(tmp_path / "alice.properties")
    files.write(access())
    comment = [line for line in files.spark.read_text().splitlines() if line.startswith("#")]
    assert "line.split('=', 1)" in comment[2]
    lines = [line for line in files.spark.read_text().splitlines() if line[:1] != "#"]
    assert dict(line.split("=", 1) for line in lines) == spark_options(access())


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    files = ClientFiles.beside(tmp_path / "alice.properties")
    assert files.write(access()) == list(files)
    assert files.write(access()) == []
    assert files.write(access(password="other")) == list(files)
    assert read_properties(str(files.java))["sasl.mechanism"] == "SCRAM-SHA-256"


def test_what_others_could_read_is_replaced(tmp_path: Path) -> None:
    files = ClientFiles.beside(tmp_path / "alice.properties")
    files.java.write_text("old")
    files.java.chmod(0o644)
    files.write(access())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


@pytest.mark.parametrize("text", ["a\nb", "a\rb"])
def test_a_line_break_is_refused_and_nothing_is_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(ClientFailure) as failure:
        ClientFiles.beside(tmp_path / "a.properties").write(access(password=text + CANARY))
    assert CANARY not in str(failure.value)
    assert list(tmp_path.iterdir()) == []


def test_no_password_in_a_repr() -> None:
    assert CANARY not in repr(access())


def test_the_trust_of_a_new_user_is_the_administrators(tmp_path: Path) -> None:
    pem = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/x/ca.pem"}
    assert trusted_authority(ClientSecurity.parse(pem)) == Path("/x/ca.pem")
    assert trusted_authority(ClientSecurity()) is None
    with pytest.raises(ClientFailure, match="PEM"):
        trusted_authority(ClientSecurity.parse({**pem, "ssl.truststore.type": "PKCS12"}))


def test_a_pem_file_needs_no_type(tmp_path: Path) -> None:
    """As for connecting."""
    path = tmp_path / "ca.pem"
    untyped = {"security.protocol": "SSL", "ssl.truststore.location": str(path)}
    for content in (None, b"\x30\x82"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(ClientFailure, match="PEM"):
            trusted_authority(ClientSecurity.parse(untyped))
    path.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    assert trusted_authority(ClientSecurity.parse(untyped)) == path


def test_the_authority_goes_along_and_everybody_may_read_it(tmp_path: Path) -> None:
    """The administrator's own copy may lie where the user cannot look."""
    (tmp_path / "certs").mkdir(mode=0o700)
    trust = tmp_path / "certs" / "ca.pem"
    trust.write_text("an authority")
    trust.chmod(0o600)
    files = ClientFiles.beside(tmp_path / "alice.properties")
    made = files.with_authority(access(trust=trust))
    assert made.trust == tmp_path / "alice-ca.pem"
    assert made.trust.read_text() == "an authority"
    assert made.trust.stat().st_mode & 0o777 == 0o644
    assert files.with_authority(access()).trust is None
