"""Every declaration against what Apache Kafka says of the same property."""

from __future__ import annotations

import pytest

from headrace.config.broker import ALIASES, BROKER_PROPERTIES, BrokerConfig
from headrace.config.broker_properties.authorization import AUTHORIZERS
from headrace.config.broker_properties.cluster import RACK_AWARE_SELECTOR
from headrace.config.property import Property, Status, UpdateMode
from headrace.config.protection import JAAS
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.values import ConfigType, format_value
from headrace.config.zookeeper_security import NEED_TLS
from headrace.core.errors import ConfigError
from tests.unit.config import kafka_4_3_facts as kafka

# Properties that Kafka 4.3 does not have; the defaults are those of Kafka 3.9 where it had them.
NOT_IN_KAFKA_4 = {
    "advertised.host.name": None,
    "allow.everyone.if.no.acl.found": "false",  # Kafka's authorizer reads these two itself
    "super.users": "",
    "headrace.authentication.timeout.ms": "10000",
    "headrace.authorizer.mode": "enforce",
    "headrace.link.client.config.dir": None,
    "headrace.oauthbearer.allowed.directory": None,
    "advertised.port": None,
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "5000",
    "headrace.fetch.session.bytes": "-1",
    "headrace.group.state.bytes": "-1",
    "headrace.inter.broker.accepted.listeners": "",
    "headrace.balance.bytes.per.second": "10000000",
    "headrace.balance.enable": "false",
    "headrace.balance.excluded.brokers": "",
    "headrace.balance.interval.ms": "60000",
    "headrace.balance.max.disk.percent": "80.0",
    "headrace.balance.max.moves": "5",
    "headrace.balance.min.bytes": "1073741824",
    "headrace.balance.min.bytes.per.second": "100000",
    "headrace.balance.threshold.percent": "10.0",
    "headrace.log.scrub.bytes.per.second": "4194304",
    "headrace.log.scrub.interval.ms": "604800000",
    "headrace.log.dir.min.free.bytes": None,
    "headrace.tier.cache.bytes": "1073741824",
    "headrace.tier.call.timeout.ms": "30000",
    "headrace.tier.delete.delay.ms": "3600000",
    "headrace.tier.endpoint": None,
    "headrace.tier.region": None,
    "headrace.tier.url": None,
    "headrace.metrics.authentication": "",
    "headrace.metrics.listener": "",
    "headrace.metrics.token.file": None,
    "headrace.peer.memory.bytes": "-1",
    "headrace.transaction.state.bytes": "-1",
    "headrace.producer.state.bytes": "-1",
    "headrace.committed.offset.bytes": "-1",
    "headrace.held.request.bytes": "-1",
    "headrace.answer.cache.bytes": "-1",
    "headrace.unsent.answer.bytes": "-1",
    "host.name": None,
    "port": None,
    "zookeeper.connect": None,
    "zookeeper.connection.timeout.ms": None,
    # Kafka 3.9 waits 18 s; ours decides only about hosts that vanish in silence.
    "zookeeper.session.timeout.ms": "6000",
    # Of Kafka 3.9, which had ZooKeeper; the digest stands for a JAAS file.
    "headrace.zookeeper.digest": None,
    "zookeeper.set.acl": "false",
    "zookeeper.ssl.client.enable": "false",
    "zookeeper.ssl.keystore.location": None,
    "zookeeper.ssl.keystore.password": None,
    "zookeeper.ssl.keystore.type": "JKS",
    "zookeeper.ssl.truststore.location": None,
    "zookeeper.ssl.truststore.password": None,
    "zookeeper.ssl.truststore.type": "JKS",
}

# Where the default differs on purpose.
OTHER_DEFAULTS = {
    # Kafka's 100 KB halves what one connection can carry; see docs/adr/0004-data-plane.md.
    "replica.socket.receive.buffer.bytes": "-1",
    "socket.receive.buffer.bytes": "-1",
    "socket.send.buffer.bytes": "-1",
    # Sharing Kafka's own default directory with a Kafka that runs would harm both.
    "log.dir": "/tmp/headrace-logs",
    # Kafka has no default and no meaning without a value; here they are optional.
    "controller.listener.names": "",
    "process.roles": "",
    # Kafka's default is Kerberos, which needs a keytab: SASL has to be asked for by its mechanism.
    "sasl.enabled.mechanisms": "",
    "sasl.mechanism.controller.protocol": None,
    "sasl.mechanism.inter.broker.protocol": None,
    # Kafka has none, and does not start with Kerberos unless somebody says "kafka".
    "sasl.kerberos.service.name": "kafka",
    # Nobody needs half a megabyte to say who they are.
    "sasl.server.max.receive.size": "65536",
}

OURS = {"headrace.balance.moved.replicas", "headrace.tier.fork"}
"""Of topics: written by Headrace alone."""

ALL = [
    *(("topic", declared) for declared in TOPIC_PROPERTIES.values()),
    *(("broker", declared) for declared in BROKER_PROPERTIES.values()),
]
IDS = [f"{scope}:{declared.name}" for scope, declared in ALL]


def facts(scope: str, name: str) -> kafka.Row | None:
    return (kafka.TOPIC if scope == "topic" else kafka.BROKER).get(name)


@pytest.mark.parametrize(("scope", "declared"), ALL, ids=IDS)
def test_default_and_type_are_kafkas(scope: str, declared: Property[object]) -> None:
    known = facts(scope, declared.name)
    if known is None:
        if declared.name in OURS:  # no operator sets it, so it is described nowhere
            assert (scope, declared.internal, declared.default_text()) == ("topic", True, "")
            return
        assert scope == "broker"
        assert declared.default_text() == NOT_IN_KAFKA_4[declared.name]
        return
    type_name, default, _, _ = known
    assert declared.type.name == type_name
    if scope == "broker" and declared.name in OTHER_DEFAULTS:
        assert declared.default_text() == OTHER_DEFAULTS[declared.name] != default
    else:
        assert declared.default_text() == default


@pytest.mark.parametrize(("scope", "declared"), ALL, ids=IDS)
def test_bounds_are_at_least_as_strict_as_kafkas(scope: str, declared: Property[object]) -> None:
    known = facts(scope, declared.name)
    if known is None:
        return
    _, _, lowest, highest = known
    if lowest is not None:
        assert declared.at_least == float(lowest)
    if highest is not None:
        assert declared.at_most == float(highest)


@pytest.mark.parametrize(("scope", "declared"), ALL, ids=IDS)
def test_values_outside_the_bounds_are_refused(scope: str, declared: Property[object]) -> None:
    step = 0.25 if declared.type is ConfigType.DOUBLE else 1
    for bound, direction in ((declared.at_least, -1), (declared.at_most, 1)):
        if bound is None:
            continue
        assert declared.parse(format_value(_typed(declared, bound))) == bound
        with pytest.raises(ValueError, match=declared.name):
            declared.parse(format_value(_typed(declared, bound + direction * step)))


def _typed(declared: Property[object], number: float) -> float:
    return float(number) if declared.type is ConfigType.DOUBLE else int(number)


@pytest.mark.parametrize(("scope", "declared"), ALL, ids=IDS)
def test_text_of_another_type_is_refused(scope: str, declared: Property[object]) -> None:
    wrong = {
        ConfigType.BOOLEAN: "yes",
        ConfigType.INT: "12x",
        ConfigType.SHORT: "40000",
        ConfigType.LONG: "9223372036854775808",
        ConfigType.DOUBLE: "half",
    }.get(declared.type, "no such choice" if declared.allowed else None)
    if wrong is None:
        return
    with pytest.raises(ValueError, match=declared.name):
        declared.parse(wrong)


@pytest.mark.parametrize(("scope", "declared"), ALL, ids=IDS)
def test_default_is_accepted_as_text_and_comes_back(scope: str, declared: Property[object]) -> None:
    text = declared.default_text()
    if text is None:
        return
    assert declared.parse(f" {text} ") == declared.default


@pytest.mark.parametrize("declared", BROKER_PROPERTIES.values(), ids=lambda declared: declared.name)
def test_a_broker_file_may_set_each_property(declared: Property[object]) -> None:
    if declared.name == JAAS:
        return  # it needs a mechanism before it: test_listener_security.py
    text = {
        "node.id": "7",
        "broker.id": "7",
        "listeners": "PLAINTEXT://127.0.0.1:9192",
        "advertised.listeners": "PLAINTEXT://broker1:9192",
        "log.dirs": "/data/a,/data/b",
        "inter.broker.listener.name": "PLAINTEXT",
        "process.roles": "broker",
        "replica.selector.class": RACK_AWARE_SELECTOR,
        "headrace.inter.broker.accepted.listeners": "PLAINTEXT",
        "headrace.metrics.authentication": "none",
        "headrace.metrics.listener": "127.0.0.1:9404",
        "zookeeper.connect": "zk1:2181,zk2:2181/Cluster1",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "authorizer.class.name": AUTHORIZERS[0],
        "super.users": "User:admin",
        "headrace.zookeeper.digest": "user:password",
    }.get(declared.name)
    if text is None:
        text = declared.default_text() or ("rack" if declared.type is ConfigType.STRING else "5")
    beside = {"authorizer.class.name": AUTHORIZERS[0]} if declared.name == "super.users" else {}
    if declared.name in NEED_TLS:
        beside = {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.location": "rack",
        }
    config = BrokerConfig.parse({**beside, declared.name: text})
    assert config[declared.name] == declared.parse(text)
    assert getattr(config, declared.attribute) == config[declared.name]
    assert config.given[declared.name] == text
    later = [told for told in config.warnings if declared.name in told and "does not use it yet" in told]
    assert bool(later) == (declared.status is Status.LATER)


OURS_AT_RUN_TIME = ("headrace.log.", "headrace.balance.")


@pytest.mark.parametrize("declared", BROKER_PROPERTIES.values(), ids=lambda declared: declared.name)
def test_what_may_change_at_run_time_is_what_kafka_lets_change(declared: Property[object]) -> None:
    expected = UpdateMode.READ_ONLY
    if declared.name in kafka.PER_BROKER:
        # Kafka opens and closes listeners while it runs. Here that would change nothing, so it is refused.
        assert declared.name in ("listeners", "listener.security.protocol.map")
    elif declared.name in kafka.CLUSTER_WIDE or declared.name.startswith(OURS_AT_RUN_TIME):
        expected = UpdateMode.CLUSTER_WIDE
    assert declared.update is expected


@pytest.mark.parametrize(("scope", "declared"), ALL, ids=IDS)
def test_prose_is_there_and_short(scope: str, declared: Property[object]) -> None:
    assert declared.prose.endswith(".")
    assert 10 < len(declared.prose) < 240


def test_every_topic_property_of_kafka_is_declared() -> None:
    assert set(TOPIC_PROPERTIES) - OURS == set(kafka.TOPIC)


def test_every_synonym_is_a_broker_property_that_points_back() -> None:
    for declared in TOPIC_PROPERTIES.values():
        for name, _ in declared.synonyms:
            assert BROKER_PROPERTIES[name].topic_name == declared.name
    for behind in BROKER_PROPERTIES.values():
        if behind.topic_name is not None:
            assert behind.name in [name for name, _ in TOPIC_PROPERTIES[behind.topic_name].synonyms]


def test_attribute_names_are_the_names_with_underscores() -> None:
    for name, declared in BROKER_PROPERTIES.items():
        assert declared.attribute == name.replace(".", "_")
        assert getattr(BrokerConfig, declared.attribute) is declared


def test_a_secret_is_not_repeated_in_the_complaint() -> None:
    secret: Property[object] = Property(
        "x.password", ConfigType.PASSWORD, None, "A secret.", allowed=("right",)
    )
    with pytest.raises(ValueError, match="hidden"):
        secret.parse("hunter2")


def test_aliases_lead_to_declared_names() -> None:
    assert ALIASES == {
        "log.segment.ms": "log.roll.ms",
        "controlled.shutdown.enabled": "controlled.shutdown.enable",
        "delegation.token.master.key": "delegation.token.secret.key",
    }


def test_a_wrong_value_stops_the_broker_and_names_the_property() -> None:
    with pytest.raises(ConfigError, match=r"log\.segment\.bytes=100: the least is 1048576"):
        BrokerConfig.parse({"log.segment.bytes": "100"})
