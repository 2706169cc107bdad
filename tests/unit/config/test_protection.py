"""A file that asks for protection that is not there, or not understood, stops the start."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.broker.security.delegation_tokens import tokens_of
from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError
from tests.broker_process import HEADRACE

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("ssl.keystore.locaton", "/etc/broker.pem", "did you mean ssl.keystore.location"),
        ("ssl.enabled", "false", "unknown property"),
        ("sasl.kerberos.service.nam", "kafka", "did you mean sasl.kerberos.service.name"),
        ("authorizer.logger", "x", "unknown property"),
        ("digest-md5.sasl.jaas.config", "x required;", "unknown property"),
        ("ssl.engine.factory.class", "com.example.Factory", "no class is loaded"),
        ("sasl.server.callback.handler.class", "com.example.Handler", "no class is loaded"),
        ("listener.name.plaintext.plain.sasl.server.callback.handler.class", "x.Y", "no class is loaded"),
        ("principal.builder.class", "com.example.Builder", "no class is loaded"),
        ("security.providers", "com.example.Provider", "no class is loaded"),
        ("ssl.trustmanager.algorithm", "PKIX", "only Java"),
        ("sasl.jaas.config", "x required;", "needs the mechanism before it"),
        ("listener.name.plaintext.sasl.jaas.config", "x required;", "needs the mechanism before it"),
        ("listener.name.plaintext.plain.sasl.enabled.mechanisms", "PLAIN", "does not differ by mechanism"),
        ("listener.name.plaintext.super.users", "User:a", "does not differ by listener"),
        ("listener.name.other.ssl.client.auth", "none", "there is no listener other"),
        ("zookeeper.set.acl", "true", "without zookeeper.ssl.client.enable=true"),
        ("zookeeper.ssl.crl.enable", "true", "unknown property"),
        ("zookeeper.clientCnxnSocket", "com.example.Socket", "no class is loaded"),
        ("headrace.zookeeper.digets", "a:b", "did you mean headrace.zookeeper.digest"),
        ("listener.name.plaintext.zookeeper.set.acl", "true", "does not differ by listener"),
        ("authorizer.class.name", "com.example.Mine", "no class is loaded"),
        ("super.users", "User:admin", "authorizer.class.name is not"),
        ("sasl.mechanism.inter.broker.protocol", "GSSAPI", "'GSSAPI' is not one of"),
        ("sasl.enabled.mechanisms", "PLAIN,plain", "'plain' is not one of"),
        ("security.inter.broker.protocol", "SSL", "no listener speaks it"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(name: str, value: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}.*{complaint}"):
        BrokerConfig.parse({name: value})


def test_all_of_them_are_named_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^sasl\.what: unknown property; ssl\.what: unknown property\. "):
        BrokerConfig.parse({"ssl.what": "1", "sasl.what": "2"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", ""),
        ("authorizer.class.name", STANDARD),
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
        ("ssl.client.auth", "none"),
        ("ssl.client.auth", "required"),  # of no listener here
        ("listener.name.plaintext.ssl.client.auth", "required"),
        ("security.inter.broker.protocol", "PLAINTEXT"),
        ("ssl.protocol", "TLSv1.3"),
        ("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty"),
        ("ssl.engine.factory.class", ""),
        (
            "principal.builder.class",
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        ),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        ),
    ],
)
def test_what_is_understood_is_accepted_without_a_word(name: str, value: str) -> None:
    assert not [each for each in BrokerConfig.parse({name: value}).warnings if name in each]


def test_what_is_switched_off_does_not_stop_the_start() -> None:
    BrokerConfig.parse({"zookeeper.set.acl": "false"})


def test_a_listener_of_kafkas_controllers_may_have_a_prefix() -> None:
    BrokerConfig.parse(
        {"controller.listener.names": "CONTROLLER", "listener.name.controller.ssl.client.auth": "required"}
    )


TOKEN_KEY = "CANARY-0123456789"
SCRAM = {"listeners": "SASL_PLAINTEXT://:9092", "sasl.enabled.mechanisms": "SCRAM-SHA-512"}


@pytest.mark.parametrize("name", ["delegation.token.secret.key", "delegation.token.master.key"])
def test_the_key_of_delegation_tokens(name: str) -> None:
    config = BrokerConfig.parse(
        {**SCRAM, name: TOKEN_KEY, "delegation.token.max.lifetime.ms": str(2**63 - 1)}
    )
    assert not [each for each in config.warnings if "delegation" in each]
    tokens = tokens_of(config)
    assert tokens is not None
    assert tokens.lifetimes.expiry_time_ms == 86_400_000
    assert tokens.lifetimes.max_lifetime_ms + 2**50 < 2**63, "a record can say when it ends"
    assert tokens.expiry_check_ms == 3_600_000
    assert "CANARY" not in repr(tokens) + repr(config.delegation_token_secret_key)
    assert tokens_of(BrokerConfig.parse({**SCRAM, name: ""})) is None


def test_a_key_that_can_be_guessed_or_is_of_no_use_is_told() -> None:
    short = BrokerConfig.parse({**SCRAM, "delegation.token.secret.key": "CANARY"}).warnings
    assert [each for each in short if "can be guessed" in each]
    assert "CANARY" not in str(short)
    useless = BrokerConfig.parse({"delegation.token.secret.key": TOKEN_KEY}).warnings
    assert [each for each in useless if "no listener has SCRAM" in each]


@pytest.mark.parametrize("line", ["super.users=User:admin", "ssl.keystore.locaton=/etc/broker.pem"])
def test_a_broker_does_not_start_with_it(tmp_path: Path, line: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path / 'logs'}\nlisteners=PLAINTEXT://127.0.0.1:0\n{line}\n")
    done = subprocess.run(
        [str(HEADRACE), "broker", "--config", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert line.partition("=")[0] in done.stderr
    assert not (tmp_path / "logs").exists()
