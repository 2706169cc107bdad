"""A file that asks for protection that is not there stops the start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError
from tests.broker_process import HEADRACE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:admin"),
        ("ssl.client.auth", "required"),
        ("ssl.keystore.location", "/etc/keystore.jks"),
        ("listener.name.internal.ssl.truststore.location", "/etc/truststore.jks"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512"),
        ("sasl.mechanism.inter.broker.protocol", "PLAIN"),
        ("listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config", "x required;"),
        ("security.inter.broker.protocol", "SASL_SSL"),
        ("delegation.token.secret.key", "secret"),
        ("zookeeper.set.acl", "true"),
    ],
)
def test_what_asks_for_protection_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig.parse({name: value})


def test_all_of_them_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^authorizer\.class\.name, super\.users: "):
        BrokerConfig.parse({"super.users": "User:admin", "authorizer.class.name": "x"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("ssl.client.auth", "none"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("zookeeper.set.acl", "false"),
        ("ssl.protocol", "TLSv1.3"),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        ),
    ],
)
def test_what_asks_for_none_is_accepted(name: str, value: str) -> None:
    BrokerConfig.parse({name: value})


def test_a_listener_that_is_mapped_to_tls_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs SASL_SSL, which is not served yet"):
        BrokerConfig.parse(
            {
                "listeners": "CLIENTS://127.0.0.1:9092",
                "listener.security.protocol.map": "CLIENTS:SASL_SSL",
                "inter.broker.listener.name": "CLIENTS",
            }
        )


def test_a_broker_does_not_start_with_it(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        f"log.dirs={tmp_path / 'logs'}\nlisteners=PLAINTEXT://127.0.0.1:0\nsuper.users=User:admin\n"
    )
    done = subprocess.run(
        [str(HEADRACE), "broker", "--config", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "super.users: authentication, authorization and encryption are not there yet" in done.stderr
    assert not (tmp_path / "logs").exists()
