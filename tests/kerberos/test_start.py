"""A broker with GSSAPI that cannot work does not start, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kerberos.conftest import MODULE, SERVICE, KerberosBroker
from tests.kerberos.realm import NAME, Realm

JAAS = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
RULES = "sasl.kerberos.principal.to.local.rules"


def _refusal(tmp_path: Path, realm: Realm, keytab: Path, **properties: str) -> str:
    broker = KerberosBroker(tmp_path / "broker", realm, keytab, **properties)
    broker.process.launch()
    assert broker.process.process is not None
    try:
        assert broker.process.process.wait(60) != 0
    finally:
        broker.process.kill()
    return broker.process.tail()


def test_without_a_keytab(tmp_path: Path, realm: Realm, keytab: Path) -> None:
    told = _refusal(tmp_path, realm, tmp_path / "missing.keytab")
    assert f"no key of {SERVICE}@{NAME} in the keytab {tmp_path}/missing.keytab" in told


def test_with_the_keytab_of_another(tmp_path: Path, realm: Realm, keytab: Path) -> None:
    other = realm.add("zoe")
    assert f"no key of {SERVICE}@{NAME} in the keytab {other}" in _refusal(tmp_path, realm, other)


def test_with_a_rule_that_is_none(tmp_path: Path, realm: Realm, keytab: Path) -> None:
    assert f"{RULES}: the rule 'RULE:x'" in _refusal(tmp_path, realm, keytab, **{RULES: "RULE:x"})


def test_with_a_service_that_clients_do_not_ask_for(tmp_path: Path, realm: Realm, keytab: Path) -> None:
    jaas = f'{MODULE} keyTab="{keytab}" principal="other/localhost@{NAME}";'
    told = _refusal(tmp_path, realm, keytab, **{JAAS: jaas})
    assert "principal has to begin with sasl.kerberos.service.name" in told


@pytest.mark.parametrize("text", ["", "[libdefaults]\n    dns_lookup_realm = false\n"])
def test_without_a_default_realm(tmp_path: Path, realm: Realm, keytab: Path, text: str) -> None:
    empty = tmp_path / "krb5.conf"
    empty.write_text(text)
    broker = KerberosBroker(tmp_path / "broker", realm, keytab)
    broker.process.place = broker.process.place._replace(
        environment={**realm.environment, "KRB5_CONFIG": str(empty)}
    )
    broker.process.launch()
    assert broker.process.process is not None
    try:
        assert broker.process.process.wait(60) != 0
    finally:
        broker.process.kill()
    assert "Kerberos is not configured" in broker.process.tail()
