"""How ZooKeeper is spoken to: a file that asks for less than it seems to does not start a broker."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.zookeeper_security import OPEN
from headrace.core.errors import ConfigError

TLS = {
    "zookeeper.connect": "zk1:2182/orders",
    "zookeeper.ssl.client.enable": "true",
    "zookeeper.ssl.truststore.location": "/etc/ca.pem",
}
KEYS = {"zookeeper.ssl.keystore.location": "/etc/brokers.p12", "zookeeper.ssl.keystore.type": "PKCS12"}


def test_without_a_word_it_is_open() -> None:
    assert BrokerConfig.parse({"zookeeper.connect": "zk1:2181"}).zookeeper_security == OPEN


def test_stores_are_those_of_zookeeper_alone() -> None:
    config = BrokerConfig.parse(
        {
            **TLS,
            **KEYS,
            "zookeeper.ssl.keystore.password": "canary",
            "ssl.keystore.location": "/etc/broker.pem",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    tls = config.zookeeper_security.tls
    assert tls is not None
    assert (tls.key_store.location, tls.key_store.type) == ("/etc/brokers.p12", "PKCS12")
    assert tls.trust_store.location == "/etc/ca.pem"
    assert tls.checks_host, "a host name is compared, whatever listeners do"
    assert "canary" not in repr(config.zookeeper_security)


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"zookeeper.set.acl": "true"}, r"zookeeper\.set\.acl=true without zookeeper\.ssl\.client\.enable"),
        ({"headrace.zookeeper.digest": "a:canary"}, r"digest without zookeeper\.ssl\.client\.enable"),
        (KEYS, r"keystore\.location without zookeeper\.ssl\.client\.enable"),
        ({"zookeeper.ssl.client.enable": "true"}, r"set zookeeper\.ssl\.truststore\.location"),
        ({**TLS, "zookeeper.set.acl": "true"}, r"somebody to whom the nodes belong"),
        ({**TLS, "headrace.zookeeper.digest": "canary"}, "is not user:password"),
        ({**TLS, "headrace.zookeeper.digest": ":canary"}, "is not user:password"),
        ({**TLS, "headrace.zookeeper.digest": "canary:"}, "is not user:password"),
    ],
)
def test_what_would_protect_less_than_it_says_is_refused(properties: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as raised:
        BrokerConfig.parse(properties)
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("identity", [KEYS, {"headrace.zookeeper.digest": "brokers:a:b"}])
def test_nodes_belong_to_a_certificate_or_to_a_user(identity: dict[str, str]) -> None:
    security = BrokerConfig.parse({**TLS, **identity, "zookeeper.set.acl": "true"}).zookeeper_security
    assert security.sets_acl
    assert (security.digest is None) == (identity is KEYS)


def test_rules_that_zookeeper_lets_everybody_change_are_warned_of() -> None:
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }

    def warned(properties: dict[str, str]) -> bool:
        return any("whoever reaches ZooKeeper" in each for each in BrokerConfig.parse(properties).warnings)

    assert warned({**authorizer, "zookeeper.connect": "zk1:2181"})
    assert warned({**authorizer, **TLS, **KEYS})
    assert not warned({**authorizer, **TLS, **KEYS, "zookeeper.set.acl": "true"})
    assert not warned(authorizer)
    assert not warned({"zookeeper.connect": "zk1:2181"})
