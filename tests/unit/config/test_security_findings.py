"""What is found wrong with a file's protection: each thing alone, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.broker_properties.authorization import AUTHORIZERS
from headrace.config.security_checks import broker_listeners
from headrace.config.security_findings import Level, examine, expiry
from headrace.core.errors import ConfigError

SERIOUS, ADVICE = Level.SERIOUS, Level.ADVICE
ADDRESS = "10.0.0.5"
GUARDED = {
    "listeners": f"BROKERS://{ADDRESS}:9093,CLIENTS://{ADDRESS}:9094",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL,CLIENTS:SASL_SSL,OPEN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BROKERS",
    "ssl.keystore.location": "/etc/broker.pem",
    "ssl.truststore.location": "/etc/ca.pem",
    "listener.name.brokers.ssl.client.auth": "required",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    "authorizer.class.name": AUTHORIZERS[0],
    "super.users": "User:CN=broker",
    "headrace.metrics.listener": "127.0.0.1:9404",
}
_OPEN = {"headrace.metrics.authentication": "none"}
PLAIN_USERS = {
    "listener.name.open.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.open.plain.sasl.jaas.config": "x.PlainLoginModule required user_a='secret';",
}


def found(**changed: str) -> list[tuple[Level, str]]:
    return findings(GUARDED | changed)


def findings(properties: Mapping[str, str]) -> list[tuple[Level, str]]:
    result = examine(BrokerConfig.parse(properties))
    assert all(each.text and each.cure for each in result), "each says what to do"
    return [(each.level, each.subject) for each in result]


def beside(*addresses: str) -> str:
    return ",".join((GUARDED["listeners"], *addresses))


def test_nothing_is_wrong_with_a_guarded_broker() -> None:
    assert found() == []


def test_a_zookeeper_that_everybody_may_change() -> None:
    subject = "zookeeper.connect"
    assert found(**{subject: "zk1:2181,localhost:2181"}) == [(SERIOUS, subject)]
    assert found(**{subject: "127.0.0.1:2181/a"}) == [(ADVICE, subject)]
    tls = {
        subject: "zk1:2182",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": "/etc/brokers.pem",
        "zookeeper.ssl.truststore.location": "/etc/ca.pem",
    }
    assert found(**tls) == [(SERIOUS, subject)]
    assert found(**tls, **{"zookeeper.set.acl": "true"}) == []


def test_a_broker_for_one_machine_gets_advice_only() -> None:
    assert findings({}) == [(ADVICE, "authorizer.class.name")]


def test_an_open_broker() -> None:
    open_listener = f"listener PLAINTEXT://{ADDRESS}:9092"
    assert findings({"listeners": f"PLAINTEXT://{ADDRESS}:9092"}) == [
        (SERIOUS, open_listener),
        (SERIOUS, open_listener),
        (SERIOUS, "authorizer.class.name"),
    ]


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"authorizer.class.name": "", "super.users": ""}, (SERIOUS, "authorizer.class.name")),
        ({"headrace.authorizer.mode": "shadow"}, (SERIOUS, "headrace.authorizer.mode")),
        ({"allow.everyone.if.no.acl.found": "true"}, (SERIOUS, "allow.everyone.if.no.acl.found")),
        ({"super.users": "User:a; User:ANONYMOUS"}, (SERIOUS, "super.users")),
        ({"headrace.metrics.listener": "0.0.0.0:9404", **_OPEN}, (ADVICE, "headrace.metrics.listener")),
        ({"headrace.metrics.listener": f"{ADDRESS}:9404", **_OPEN}, (ADVICE, "headrace.metrics.listener")),
        (
            {"headrace.inter.broker.accepted.listeners": "clients"},
            (ADVICE, "headrace.inter.broker.accepted.listeners"),
        ),
        (
            {"listener.name.brokers.ssl.client.auth": "requested"},
            (SERIOUS, f"listener BROKERS://{ADDRESS}:9093"),
        ),
        ({"listeners": beside("PLAINTEXT://127.0.0.1:9092")}, (ADVICE, "listeners")),
        ({"listener.name.brokers.ssl.client.auth": "none"}, (SERIOUS, f"listener BROKERS://{ADDRESS}:9093")),
    ],
)
def test_each_alone(changed: dict[str, str], wanted: tuple[Level, str]) -> None:
    assert found(**changed) == [wanted]


def test_passwords_that_can_be_read_on_the_way() -> None:
    outside, inside = f"OPEN://{ADDRESS}:9092", "OPEN://127.0.0.1:9092"
    assert found(**PLAIN_USERS, listeners=beside(outside)) == [
        (SERIOUS, f"listener {outside}"),
        (SERIOUS, f"listener {outside}"),
        (SERIOUS, "listeners"),
    ]
    assert found(**PLAIN_USERS, listeners=beside(inside)) == [
        (ADVICE, f"listener {inside}"),
        (ADVICE, "listeners"),
    ]


@pytest.mark.parametrize(
    ("days", "wanted", "words"),
    [(31, None, ""), (29, ADVICE, "in 29 days"), (6, SERIOUS, "in 6 days"), (-1, SERIOUS, "has expired")],
)
def test_certificates_end(days: int, wanted: Level | None, words: str) -> None:
    result = list(expiry("listener SSL", days * 86_400 + 60))
    assert [each.level for each in result] == ([] if wanted is None else [wanted])
    assert all(words in each.text for each in result)


def test_brokers_are_accepted_where_the_file_says_so() -> None:
    def listeners(**changed: str) -> frozenset[str]:
        return broker_listeners(BrokerConfig.parse(GUARDED | changed))

    assert listeners() == {"BROKERS"}
    assert listeners(**{"headrace.inter.broker.accepted.listeners": "clients"}) == {"BROKERS", "CLIENTS"}
    with pytest.raises(ConfigError, match=r"accepted\.listeners: there is no listener PLAINTEXT"):
        listeners(**{"headrace.inter.broker.accepted.listeners": "PLAINTEXT"})
    moving = BrokerConfig.parse(GUARDED | {"headrace.inter.broker.accepted.listeners": "CLIENTS"})
    assert any("accepted on CLIENTS too" in warning for warning in moving.warnings)
