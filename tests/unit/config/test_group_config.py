"""What may be set for one group, what holds then, and how DescribeConfigs tells it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.broker import BrokerConfig
from headrace.config.describe import ConfigSource, describe_group
from headrace.config.group import ConsumerGroupSettings, resolve_group, validate_group_overrides
from headrace.config.group_properties import GROUP_PROPERTIES
from headrace.core.errors import InvalidConfig

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
DEFAULTS = BrokerConfig.parse({})
COMMON = ConsumerGroupSettings(45_000, 5_000, 1_000)


def narrow(**bounds: int) -> BrokerConfig:
    return BrokerConfig.parse(
        {f"group.consumer.{name.replace('_', '.')}": str(value) for name, value in bounds.items()}
    )


WIDE = narrow(
    min_session_timeout_ms=1_000,
    max_session_timeout_ms=60_000,
    min_heartbeat_interval_ms=1,
    max_heartbeat_interval_ms=50_000,
)


def test_names_are_those_of_the_broker_without_their_first_word() -> None:
    assert set(GROUP_PROPERTIES) == {SESSION, HEARTBEAT, INTERVAL}
    for declared in GROUP_PROPERTIES.values():
        ((name, factor),) = declared.synonyms
        assert (name, factor) == (f"group.{declared.name}", 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [(SESSION, "45000"), (SESSION, "60000"), (HEARTBEAT, "15000"), (INTERVAL, "0"), (SESSION, " 50000 ")],
)
def test_values_within_the_bounds_of_the_broker(name: str, value: str) -> None:
    validate_group_overrides({name: value}, DEFAULTS)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (SESSION, "44999", "45000 to 60000"),
        (SESSION, "60001", "group.consumer.max.session.timeout.ms"),
        (HEARTBEAT, "4999", "5000 to 15000"),
        (INTERVAL, "15001", "0 to 15000"),
        (INTERVAL, "-1", "the least is 0"),
        (SESSION, "soon", "consumer.session.timeout.ms=soon"),
        (SESSION, "", "consumer.session.timeout.ms="),
        ("consumer.session.timeout", "50000", "did you mean consumer.session.timeout.ms?"),
        ("share.session.timeout.ms", "45000", "is not a group property"),
    ],
)
def test_others_are_refused_in_words(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        validate_group_overrides({name: value}, DEFAULTS)
    assert words in str(refused.value)


def test_the_bounds_are_the_broker_s() -> None:
    validate_group_overrides({SESSION: "1000", HEARTBEAT: "1"}, WIDE)
    with pytest.raises(InvalidConfig):
        validate_group_overrides({SESSION: "1000", HEARTBEAT: "1"}, DEFAULTS)


def test_a_session_is_longer_than_the_interval_of_heartbeats() -> None:
    with pytest.raises(InvalidConfig, match="is not below"):
        validate_group_overrides({SESSION: "2000", HEARTBEAT: "2000"}, WIDE)
    with pytest.raises(InvalidConfig, match="is not below"):
        validate_group_overrides({SESSION: "5000"}, WIDE)  # the broker's interval is 5 s


def test_what_a_group_has_not_set_is_the_broker_s() -> None:
    assert resolve_group(DEFAULTS, {}) == COMMON
    assert resolve_group(DEFAULTS, {HEARTBEAT: "7000"}) == COMMON._replace(heartbeat_interval_ms=7_000)


def test_bounds_that_became_narrower_win() -> None:
    assert resolve_group(DEFAULTS, {SESSION: "1000"}).session_timeout_ms == 45_000
    assert resolve_group(DEFAULTS, {SESSION: "99000"}).session_timeout_ms == 60_000


def test_a_pair_that_makes_no_sense_any_more_counts_for_nothing() -> None:
    overrides = {SESSION: "10000", HEARTBEAT: "20000", INTERVAL: "3"}
    assert resolve_group(WIDE, overrides) == COMMON._replace(assignment_interval_ms=3)


def test_text_that_cannot_be_read_counts_for_nothing() -> None:
    assert resolve_group(DEFAULTS, {SESSION: "P1D", "of.a.later.version": "1"}) == COMMON


@given(
    st.dictionaries(
        st.sampled_from(list(GROUP_PROPERTIES)), st.one_of(st.integers(-5, 100_000).map(str), st.text())
    )
)
def test_whatever_is_stored_members_are_not_taken_for_dead(overrides: dict[str, str]) -> None:
    for broker in (DEFAULTS, WIDE):
        settings = resolve_group(broker, overrides)
        assert 0 < settings.heartbeat_interval_ms < settings.session_timeout_ms
        try:
            validate_group_overrides(overrides, broker)
        except InvalidConfig:
            continue
        for declared in GROUP_PROPERTIES.values():
            if declared.name in overrides:  # what is accepted is what holds
                field = declared.name.removeprefix("consumer.").replace(".", "_")
                assert getattr(settings, field) == int(overrides[declared.name])


def test_described_with_all_that_lies_beneath() -> None:
    broker = BrokerConfig.parse({"group.consumer.heartbeat.interval.ms": "6000"})
    entries = {
        entry.name: entry
        for entry in describe_group(
            broker, {"group.consumer.assignment.interval.ms": "9"}, {}, {SESSION: "50000"}
        )
    }
    group, static = ConfigSource.DYNAMIC_GROUP_CONFIG, ConfigSource.STATIC_BROKER_CONFIG
    default, cluster = ConfigSource.DEFAULT_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert entries[SESSION].synonyms == [
        (SESSION, "50000", group),
        ("group.consumer.session.timeout.ms", "45000", default),
    ]
    assert (entries[SESSION].source, entries[SESSION].read_only) == (group, False)
    assert (entries[HEARTBEAT].value, entries[HEARTBEAT].source) == ("6000", static)
    assert (entries[INTERVAL].value, entries[INTERVAL].source) == ("9", cluster)
    assert [each.name for each in describe_group(broker, {}, {}, {}, ["x", SESSION])] == [SESSION]
