"""DescribeConfigs against what Apache Kafka 4.3.1 answered to the same settings."""

from __future__ import annotations

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.describe import (
    ConfigEntry,
    ConfigSource,
    describe_broker,
    describe_default_broker,
    describe_topic,
)
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.values import ConfigType

TOPIC = ConfigSource.DYNAMIC_TOPIC_CONFIG
BROKER = ConfigSource.DYNAMIC_BROKER_CONFIG
CLUSTER = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
FILE = ConfigSource.STATIC_BROKER_CONFIG
DEFAULT = ConfigSource.DEFAULT_CONFIG

CONFIG = BrokerConfig.parse({"broker.id": "1", "log.retention.minutes": "600"})
OF_CLUSTER = {"log.segment.bytes": "2000000"}
OF_BROKER = {"log.segment.bytes": "3000000", "log.retention.ms": "777777"}
OF_TOPIC = {"retention.ms": "5000", "cleanup.policy": "compact"}


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def topic_entries() -> dict[str, ConfigEntry]:
    return by_name(describe_topic(CONFIG, OF_CLUSTER, OF_BROKER, OF_TOPIC))


def test_a_topic_lists_kafkas_names() -> None:
    listed = {name for name, declared in TOPIC_PROPERTIES.items() if not declared.internal}
    assert set(topic_entries()) == listed
    assert len(listed) == 33


def test_a_topic_setting_with_all_that_lies_beneath() -> None:
    entry = topic_entries()["retention.ms"]
    assert (entry.value, entry.source, entry.is_default) == ("5000", TOPIC, False)
    assert entry.synonyms == [
        ("retention.ms", "5000", TOPIC),
        ("log.retention.ms", "777777", BROKER),
        ("log.retention.minutes", "600", FILE),
        ("log.retention.hours", "168", DEFAULT),
    ]


def test_a_broker_setting_shows_at_the_topic() -> None:
    entry = topic_entries()["segment.bytes"]
    assert (entry.value, entry.source, entry.type) == ("3000000", BROKER, ConfigType.INT)
    assert entry.synonyms == [
        ("log.segment.bytes", "3000000", BROKER),
        ("log.segment.bytes", "2000000", CLUSTER),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]


def test_defaults_of_a_topic() -> None:
    entry = topic_entries()["min.cleanable.dirty.ratio"]
    assert (entry.value, entry.source, entry.is_default, entry.read_only) == ("0.5", DEFAULT, True, False)
    assert entry.synonyms == [("log.cleaner.min.cleanable.ratio", "0.5", DEFAULT)]


def test_synonyms_begin_at_the_own_name_as_in_kafka() -> None:
    entries = topic_entries()
    for name in ("segment.ms", "segment.jitter.ms", "flush.ms", "remote.storage.enable"):
        assert entries[name].synonyms == []
        assert entries[name].source is DEFAULT
    assert entries["segment.ms"].value == "604800000"


def test_list_values() -> None:
    entry = topic_entries()["cleanup.policy"]
    assert entry.value == "compact"
    assert entry.synonyms == [("cleanup.policy", "compact", TOPIC), ("log.cleanup.policy", "delete", DEFAULT)]
    assert topic_entries()["leader.replication.throttled.replicas"].value == ""


def test_the_rates_of_replication_are_listed_where_they_are_set() -> None:
    name = "leader.replication.throttled.rate"
    assert name not in by_name(describe_broker(CONFIG, {}, {}))
    for cluster, broker in (({name: "7"}, {}), ({}, {name: "7"})):
        assert by_name(describe_broker(CONFIG, cluster, broker))[name].value == "7"


def test_only_the_names_that_are_asked_for() -> None:
    asked = describe_topic(CONFIG, {}, {}, {}, names=["retention.ms", "nosuch"])
    assert [entry.name for entry in asked] == ["retention.ms"]
    assert [entry.name for entry in describe_broker(CONFIG, {}, {}, names=["num.partitions"])] == [
        "num.partitions"
    ]
    assert describe_default_broker(OF_CLUSTER, names=["num.partitions"]) == []


def test_a_broker_lists_all_that_is_declared() -> None:
    entries = by_name(describe_broker(CONFIG, OF_CLUSTER, OF_BROKER))
    assert set(entries) == {name for name, declared in BROKER_PROPERTIES.items() if not declared.internal}
    assert entries["broker.id"].synonyms == [("broker.id", "1", FILE), ("broker.id", "-1", DEFAULT)]
    assert entries["node.id"].synonyms == [("node.id", "1", FILE)]
    assert entries["broker.id"].read_only
    assert not entries["log.segment.bytes"].read_only
    assert entries["log.segment.bytes"].value == "3000000"
    assert entries["broker.rack"].value is None
    assert entries["broker.rack"].synonyms == []
    assert entries["log.retention.minutes"].synonyms == [
        ("log.retention.minutes", "600", FILE),
        ("log.retention.hours", "168", DEFAULT),
    ]
    assert entries["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"
    assert all(entry.documentation for entry in entries.values())


def test_the_default_broker_lists_only_what_was_set() -> None:
    entries = describe_default_broker({**OF_CLUSTER, "nobody.knows": "1"})
    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("log.segment.bytes", "2000000", CLUSTER)
    ]
    assert entries[0].synonyms == [("log.segment.bytes", "2000000", CLUSTER)]
