"""Kafka's client properties, and what is said of those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.core.errors import ConfigError

CANARY = "canary-0a4e"
SCRAM = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{CANARY}";'
)
PLAIN = (
    f'org.apache.kafka.common.security.plain.PlainLoginModule required username="bob" password="{CANARY}";'
)


def test_without_properties_it_is_plaintext() -> None:
    assert ClientSecurity.parse({"bootstrap.servers": "a:1", "request.timeout.ms": "1"}) == PLAINTEXT


def test_tls_with_a_certificate_of_our_own() -> None:
    security = ClientSecurity.parse(
        {
            "security.protocol": "SSL",
            "ssl.keystore.location": "/me.pem",
            "ssl.truststore.location": "/ca.pem",
            "ssl.key.password": CANARY,
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert security.tls is not None
    assert security.tls.files == ("/me.pem", "/ca.pem")
    assert not security.tls.checks_host
    assert security.credentials is None
    assert CANARY not in repr(security)


@pytest.mark.parametrize(
    ("mechanism", "jaas", "username", "is_token"),
    [
        ("SCRAM-SHA-512", SCRAM, "alice", False),
        ("SCRAM-SHA-256", SCRAM.replace(";", ' tokenauth="true";'), "alice", True),
        ("PLAIN", PLAIN, "bob", False),
    ],
)
def test_sasl(mechanism: str, jaas: str, username: str, is_token: bool) -> None:
    security = ClientSecurity.parse(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    )
    found = security.credentials
    assert found is not None
    assert (found.mechanism, found.username, found.is_token) == (mechanism, username, is_token)
    assert found.password.reveal() == CANARY
    assert CANARY not in repr(security)
    assert security.tls is None


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"security.protocol": "TLS"}, "use one of PLAINTEXT"),
        ({"sasl.username": "alice"}, r"not a property of Kafka: set sasl\.jaas\.config"),
        ({"sasl.password": CANARY}, r"not a property of Kafka: set sasl\.jaas\.config"),
        ({"ssl.ca.location": "/ca.pem"}, r"set ssl\.truststore\.location"),
        ({"ssl.truststore.locaton": "/ca.pem"}, "unknown property"),
        ({"ssl.client.auth": "required"}, "belongs to a broker"),
        ({"security.protocol": "SASL_SSL"}, r"needs sasl\.mechanism"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "not GSSAPI"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, r"needs sasl\.jaas\.config"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM},
            "PlainLoginModule",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": PLAIN.replace("username", "user"),
            },
            "are needed",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": PLAIN.replace(";", " tokenauth=true;"),
            },
            "need SCRAM",
        ),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "SSLv3"}, "'SSLv3' is not one of"),
    ],
)
def test_what_cannot_be_is_refused(properties: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        ClientSecurity.parse(properties)
    assert CANARY not in str(caught.value)


def test_a_file_is_named_in_the_complaint(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    with pytest.raises(ConfigError, match="No such file"):
        ClientSecurity.read(str(path))
    path.write_text("security.protocol=what")
    with pytest.raises(ConfigError, match=r"client\.properties: security\.protocol=WHAT"):
        ClientSecurity.read(str(path))
