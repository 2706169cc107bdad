from __future__ import annotations

import dataclasses

import pytest

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.property import Property, UpdateMode
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.validation import validate_broker_dynamic, validate_topic_overrides
from headrace.config.values import ConfigType
from headrace.core.errors import InvalidConfig, InvalidRequest

MOVED_REPLICAS = "headrace.balance.moved.replicas"
"""Internal, and of use to brokers all the same."""
LISTED = [
    declared
    for declared in TOPIC_PROPERTIES.values()
    if not declared.internal or declared.name in (MOVED_REPLICAS, "headrace.tier.fork")
]
WITH_BROKER_DEFAULT = [declared for declared in LISTED if declared.synonyms]


def resolve(
    file: dict[str, str] | None = None,
    cluster: dict[str, str] | None = None,
    broker: dict[str, str] | None = None,
    **overrides: str,
) -> TopicConfig:
    own = {name.replace("_", "."): text for name, text in overrides.items()}
    return resolve_topic(BrokerConfig.parse(file or {}), cluster or {}, broker or {}, own)


def distinct_values(declared: Property[object]) -> list[str]:
    """Four accepted texts, none of them the default where the type has that many."""
    if declared.name == "compression.gzip.level":
        return ["4", "5", "6", "7"]
    if declared.type is ConfigType.BOOLEAN:
        return ["true", "false", "true", "false"]
    if declared.type is ConfigType.DOUBLE:
        return ["0.1", "0.2", "0.3", "0.4"]
    if declared.allowed:
        choices = [choice for choice in declared.allowed if choice != declared.default]
        return [choices[at % len(choices)] if at % 2 == 0 else declared.allowed[-1] for at in range(4)]
    base = 2_000_000 if declared.name == "segment.bytes" else 10
    return [str(base + at) for at in range(4)]


def test_the_class_has_one_attribute_for_each_declaration() -> None:
    assert [field.name for field in dataclasses.fields(TopicConfig)] == [
        declared.attribute for declared in LISTED
    ]


@pytest.mark.parametrize("declared", LISTED, ids=lambda declared: declared.name)
def test_defaults(declared: Property[object]) -> None:
    value = getattr(resolve(), declared.attribute)
    assert value == (frozenset({"delete"}) if declared.name == "cleanup.policy" else declared.default)


@pytest.mark.parametrize("declared", WITH_BROKER_DEFAULT, ids=lambda declared: declared.name)
def test_the_stronger_source_wins(declared: Property[object]) -> None:
    name = declared.synonyms[0][0]
    file, cluster, broker, own = distinct_values(declared)
    overrides: dict[str, str] = {}

    def check(expected: str, in_cluster: dict[str, str], in_broker: dict[str, str]) -> None:
        config = resolve_topic(BrokerConfig.parse({name: file}), in_cluster, in_broker, overrides)
        parsed = declared.parse(expected)
        value = frozenset(parsed) if declared.name == "cleanup.policy" else parsed
        assert getattr(config, declared.attribute) == value

    assert BROKER_PROPERTIES[name].update is UpdateMode.CLUSTER_WIDE
    check(file, {}, {})
    check(cluster, {name: cluster}, {})
    check(broker, {name: cluster}, {name: broker})
    overrides[declared.name] = own
    check(own, {name: cluster}, {name: broker})


def test_retention_time_takes_the_finest_unit_that_is_set() -> None:
    assert resolve().retention_ms == 168 * 3_600_000
    assert resolve({"log.retention.hours": "2"}).retention_ms == 7_200_000
    assert resolve({"log.retention.hours": "2", "log.retention.minutes": "3"}).retention_ms == 180_000
    all_three = {"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "5"}
    assert resolve(all_three).retention_ms == 5
    assert resolve(all_three, retention_ms="7").retention_ms == 7


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_retention_without_limit_in_any_unit(name: str) -> None:
    assert resolve({name: "-1"}).retention_ms == -1
    assert resolve({name: "-5"}).retention_ms == -1


def test_roll_time_takes_milliseconds_before_hours() -> None:
    assert resolve({"log.roll.hours": "2"}).segment_ms == 7_200_000
    assert resolve({"log.roll.hours": "2", "log.roll.ms": "9"}).segment_ms == 9
    assert resolve({"log.segment.ms": "8"}).segment_ms == 8
    assert resolve({"log.roll.jitter.hours": "1"}).segment_jitter_ms == 3_600_000
    assert resolve({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "6"}).segment_jitter_ms == 6


def test_flush_time_falls_back_to_the_scheduler() -> None:
    assert resolve({"log.flush.scheduler.interval.ms": "70"}).flush_ms == 70
    assert resolve({"log.flush.scheduler.interval.ms": "70", "log.flush.interval.ms": "50"}).flush_ms == 50


def test_cleanup_policy_is_a_set() -> None:
    assert resolve(cleanup_policy=" delete , compact ").cleanup_policy == {"delete", "compact"}
    assert resolve(cleanup_policy="").cleanup_policy == frozenset()


def test_a_read_only_property_stored_as_dynamic_does_not_count() -> None:
    assert resolve(cluster={"log.retention.hours": "1"}).retention_ms == 168 * 3_600_000


def test_stored_text_that_cannot_be_read_is_passed_over() -> None:
    config = resolve({"log.segment.bytes": "3000000"}, {}, {"log.segment.bytes": "7"}, segment_bytes="x")
    assert config.segment_bytes == 3_000_000


def test_small_segments_for_tests() -> None:
    assert resolve(internal_segment_bytes="500").segment_bytes == 500
    assert resolve(internal_segment_bytes="500", segment_bytes="2000000").segment_bytes == 500


def test_a_topic_config_does_not_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        resolve().segment_bytes = 1  # type: ignore[misc]  # that it is refused is the test


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.bytes", "100"),
        ("segment.bytes", "99999999999"),
        ("cleanup.policy", "foo"),
        ("retention.ms", "x"),
        ("retention.ms", ""),
        ("retention.ms", "-5"),
        ("min.cleanable.dirty.ratio", "2"),
        ("preallocate", "yes"),
        ("max.compaction.lag.ms", "0"),
        ("leader.replication.throttled.replicas", "zz"),
        ("follower.replication.throttled.replicas", "1:2,*"),
        ("compression.gzip.level", "0"),
        ("compression.zstd.level", "99"),
        ("compression.type", "GZIP"),
        ("remote.storage.enable", "yes"),
        ("min.insync.replicas", "0"),
        ("message.timestamp.type", "x"),
        ("message.format.version", "2.0"),
        ("log.segment.bytes", "2000000"),
    ],
)
def test_topic_settings_that_kafka_refuses(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name.replace(".", r"\.")):
        validate_topic_overrides({name: text})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact,delete,delete"),
        ("cleanup.policy", " delete , compact "),
        ("preallocate", "TRUE"),
        ("retention.ms", " 12 "),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("local.retention.ms", "99999999999"),
        ("internal.segment.bytes", "500"),
        ("compression.gzip.level", "-1"),
    ],
)
def test_topic_settings_that_kafka_takes(name: str, text: str) -> None:
    validate_topic_overrides({name: text})


def test_an_unknown_topic_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidConfig, match=r"did you mean retention\.ms"):
        validate_topic_overrides({"retention.sm": "5"})
    with pytest.raises(InvalidConfig, match=r"nosuch is not a topic property$"):
        validate_topic_overrides({"nosuch": "5"})


def test_topic_rules_over_two_settings() -> None:
    with pytest.raises(InvalidConfig, match="above"):
        validate_topic_overrides({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"})
    validate_topic_overrides({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "9"})


@pytest.mark.parametrize(
    ("name", "text", "for_one_broker"),
    [
        ("broker.id", "9", True),
        ("num.partitions", "3", False),
        ("log.retention.hours", "3", True),
        ("advertised.listeners", "PLAINTEXT://h:1", True),
        ("log.segment.bytes", "1", True),
        ("message.max.bytes", "zz", False),
        ("log.retention.ms", "0", True),
        ("log.roll.ms", "0", False),
        ("listeners", "PLAINTEXT://:9", False),
        ("listeners", "PLAINTEXT://:9", True),
    ],
)
def test_broker_settings_that_kafka_refuses_at_run_time(name: str, text: str, for_one_broker: bool) -> None:
    with pytest.raises(InvalidRequest, match=name.replace(".", r"\.")):
        validate_broker_dynamic({name: text}, for_one_broker=for_one_broker)


@pytest.mark.parametrize(
    ("name", "text", "for_one_broker"),
    [
        ("nosuch.thing", "1", False),
        ("max.connections", "100", False),
        ("log.retention.ms", "-1", True),
        ("log.segment.ms", "5", True),
        ("min.insync.replicas", "2", False),
        ("unclean.leader.election.enable", "true", False),
    ],
)
def test_broker_settings_that_kafka_takes_at_run_time(name: str, text: str, for_one_broker: bool) -> None:
    validate_broker_dynamic({name: text}, for_one_broker=for_one_broker)


def test_a_setting_of_one_broker_cannot_be_set_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    own: Property[object] = Property(
        "own.thing", ConfigType.INT, 1, "A thing of one broker.", update=UpdateMode.PER_BROKER
    )
    monkeypatch.setitem(BROKER_PROPERTIES, own.name, own)
    validate_broker_dynamic({"own.thing": "2"}, for_one_broker=True)
    with pytest.raises(InvalidRequest, match=r"own\.thing belongs to one broker"):
        validate_broker_dynamic({"own.thing": "2"}, for_one_broker=False)
