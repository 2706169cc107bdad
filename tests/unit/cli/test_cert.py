"""`headrace cert`: what it makes is what OpenSSL accepts, and nobody else can read the keys."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.cert import cert


def run(*args: str) -> Result:
    return CliRunner().invoke(cert, args)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    result = run("create", "broker-1", "--host", "127.0.0.1", "--host", "b1.example", "--dir", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert run("create", "alice", "--dir", str(tmp_path)).exit_code == 0
    return tmp_path


def shake_hands(directory: Path, server: str, client: str, host: str) -> None:
    """In memory, each side with its own certificate."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(directory / f"{server}.pem", directory / f"{server}-key.pem")
    serving.load_verify_locations(directory / "ca.pem")
    serving.verify_mode = ssl.CERT_REQUIRED
    dialing = ssl.create_default_context(cafile=str(directory / "ca.pem"))
    dialing.load_cert_chain(directory / f"{client}.pem", directory / f"{client}-key.pem")
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        serving.wrap_bio(to_server, to_client, server_side=True),
        dialing.wrap_bio(to_client, to_server, server_hostname=host),
    )
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
    assert sides[0].getpeercert() is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "b1.example"])
def test_a_broker_and_a_client_trust_each_other(made: Path, host: str) -> None:
    shake_hands(made, "broker-1", "alice", host)
    shake_hands(made, "broker-1", "broker-1", host)


def test_another_host_is_not_trusted(made: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, "broker-1", "alice", "b2.example")


def test_keys_are_for_their_owner_alone(made: Path) -> None:
    for path in made.glob("*-key*.pem"):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert len(list(made.glob("*-key.pem"))) == 3
    assert len(list(made.glob("*-keystore.pem"))) == 2


def test_a_keystore_is_the_key_and_the_certificate(made: Path) -> None:
    run("renew", "alice", "--dir", str(made))
    key, certificate = (made / "alice-key.pem").read_bytes(), (made / "alice.pem").read_bytes()
    assert (made / "alice-keystore.pem").read_bytes() == key + certificate


def test_what_is_there_is_not_replaced_unless_it_is_renewed(made: Path) -> None:
    before = (made / "broker-1.pem").read_bytes()
    assert run("create", "broker-1", "--dir", str(made)).exit_code != 0
    assert (made / "broker-1.pem").read_bytes() == before
    assert run("renew", "broker-1", "--dir", str(made)).exit_code == 0
    assert (made / "broker-1.pem").read_bytes() != before
    shake_hands(made, "broker-1", "alice", "b1.example")


def test_it_is_shown_for_whom_and_until_when(made: Path) -> None:
    result = run("show", str(made / "broker-1.pem"), "-o", "json")
    (shown,) = json.loads(result.output)
    assert shown["subject"] == "CN=broker-1"
    assert shown["hosts"] == ["127.0.0.1", "b1.example"]
    assert shown["days_left"] == 89


@pytest.mark.parametrize("name", ["../x", "ca", "ca-key", "alice-key", "alice-keystore", ".hidden", ""])
def test_a_name_stays_in_its_directory(tmp_path: Path, name: str) -> None:
    assert run("create", name, "--dir", str(tmp_path / "certs")).exit_code != 0
    assert not (tmp_path / "x.pem").exists()
