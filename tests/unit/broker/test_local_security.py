"""What `headrace up --secure` prepares: made once, used again, and readable by its owner alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from headrace.broker.process import local_security
from headrace.broker.process.local_security import LocalSecurity
from headrace.cli.main import cli
from headrace.client.certificates import show
from headrace.client.client_files import Access
from headrace.client.errors import ClientFailure
from headrace.client.security import ClientSecurity
from headrace.config.broker import BrokerConfig
from headrace.config.secret import Secret


def contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_the_second_start_makes_nothing(tmp_path: Path) -> None:
    assert LocalSecurity(tmp_path).prepare([1, 2], [9094, 9095]) == ["admin", "broker-1", "broker-2"]
    before = contents(tmp_path)
    assert LocalSecurity(tmp_path).prepare([1, 2], [9094, 9095]) == []
    assert contents(tmp_path) == before
    assert LocalSecurity(tmp_path).prepare([1, 2, 3], [9094, 9095, 9096]) == ["broker-3"]


def test_a_certificate_that_ends_soon_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    security = LocalSecurity(tmp_path)
    security.prepare([1], [9093])
    authority = (tmp_path / "certs/ca.pem").read_bytes()
    (before,) = show(tmp_path / "certs/broker-1.pem")
    monkeypatch.setattr(local_security, "RENEWED_DAYS", 90)
    assert security.prepare([1], [9093]) == ["admin", "broker-1"]
    (after,) = show(tmp_path / "certs/broker-1.pem")
    assert after.hosts == before.hosts
    assert timedelta(0) <= after.ends - before.ends < timedelta(minutes=5)
    assert (tmp_path / "certs/ca.pem").read_bytes() == authority


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "certs").mkdir(mode=0o755)
    security = LocalSecurity(tmp_path)
    security.prepare([1], [9093])
    assert (tmp_path / "certs").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "certs").glob("*-key*.pem"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert security.admin_file.stat().st_mode & 0o777 == 0o600


def test_its_properties_are_those_of_a_protected_broker(tmp_path: Path) -> None:
    security = LocalSecurity(tmp_path)
    properties = {
        "broker.id": "2",
        "log.dirs": str(tmp_path / "data"),
        **security.properties(2, 9092, 9095, [1, 2, 3]),
    }
    config = BrokerConfig.parse(properties)
    assert config.warnings == ()
    clients, brokers = config.security_of("SASL_SSL"), config.security_of("SSL")
    assert clients.tls is not None
    assert clients.tls.client_auth == "none"
    assert clients.has_sasl
    assert brokers.tls is not None
    assert brokers.tls.client_auth == "required"
    assert config.inter_broker_listener.name == "SSL"
    assert config.authorizer_class_name
    assert set(config.super_users.split(";")) == {
        "User:admin",
        "User:CN=admin",
        *(f"User:CN=broker-{number}" for number in (1, 2, 3)),
    }
    assert not config.allow_everyone_if_no_acl_found
    assert "certs/broker-2-keystore.pem" in str(clients.tls.key_store.location)


def test_the_file_of_admin_is_one_that_clients_read(tmp_path: Path) -> None:
    security = LocalSecurity(tmp_path)
    security.prepare([1], [9093])
    read = ClientSecurity.read(str(security.admin_file))
    assert (read.protocol, read.credentials) == ("SSL", None)
    assert read.tls is not None
    assert Path(str(read.tls.key_store.location)).exists()


def test_a_file_of_somebody_else_is_not_taken_for_admins(tmp_path: Path) -> None:
    security = LocalSecurity(tmp_path)
    security.files.write(Access("127.0.0.1:1", "SASL_SSL", "SCRAM-SHA-512", "bob", Secret("p"), None))
    with pytest.raises(ClientFailure, match="not the file of admin"):
        security.client_config()


def test_protected_data_is_not_served_open(tmp_path: Path) -> None:
    LocalSecurity(tmp_path).prepare([1], [9093])
    for brokers in ("1", "3"):
        result = CliRunner().invoke(cli, ["up", "--dir", str(tmp_path), "--port", "0", "--brokers", brokers])
        assert result.exit_code == 1
        assert "was served with --secure before" in result.stderr
        assert "hint: add --secure" in result.stderr
