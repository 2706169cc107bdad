"""Tiered storage: settings that do not go together are refused, as Kafka refuses them."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.tiering import local_retention_bytes, local_retention_ms
from headrace.config.topic import resolve_topic
from headrace.controller.declared_schema import DeclaredSchema
from headrace.core.errors import ConfigError, InvalidConfig

ON = {"remote.storage.enable": "true"}
WITH_STORE = {"remote.log.storage.system.enable": "true", "headrace.tier.url": "s3://history/kafka"}


def schema() -> DeclaredSchema:
    return DeclaredSchema(BrokerConfig.parse(WITH_STORE))


def test_a_broker_must_know_its_store() -> None:
    with pytest.raises(ConfigError, match=r"headrace\.tier\.url"):
        BrokerConfig.parse({"remote.log.storage.system.enable": "true"})


def test_a_topic_needs_brokers_with_a_store() -> None:
    with pytest.raises(InvalidConfig, match=r"remote\.log\.storage\.system\.enable"):
        DeclaredSchema().check_topic(ON)
    schema().check_topic(ON)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"cleanup.policy": "compact"}, "compact"),
        ({"cleanup.policy": "compact,delete"}, "compact"),
        ({"retention.ms": "1000", "local.retention.ms": "1001"}, r"local\.retention\.ms"),
        ({"retention.ms": "1000", "local.retention.ms": "-1"}, r"local\.retention\.ms"),
        ({"retention.bytes": "10", "local.retention.bytes": "11"}, r"local\.retention\.bytes"),
        ({"remote.log.copy.disable": "true", "local.retention.ms": "1000"}, r"remote\.log\.copy\.disable"),
    ],
)
def test_what_does_not_go_together(settings: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfig, match=named):
        schema().check_topic({**ON, **settings})
    schema().check_topic({name: value for name, value in settings.items() if "copy" not in name})


@pytest.mark.parametrize(
    "settings",
    [
        {"retention.ms": "-1", "local.retention.ms": "1000"},
        {"retention.bytes": "-1", "local.retention.bytes": "-1"},
        {"remote.log.copy.disable": "true"},
        {"retention.ms": "1000", "local.retention.ms": "1000"},
    ],
)
def test_what_goes_together(settings: dict[str, str]) -> None:
    schema().check_topic({**ON, **settings})


def test_history_is_not_given_up_by_mistake() -> None:
    with pytest.raises(InvalidConfig, match=r"remote\.log\.delete\.on\.disable"):
        schema().check_topic({}, ON)
    with pytest.raises(InvalidConfig, match=r"remote\.log\.delete\.on\.disable"):
        schema().check_topic({"remote.storage.enable": "false"}, ON)
    schema().check_topic({"remote.log.delete.on.disable": "true"}, ON)
    schema().check_topic({"remote.log.delete.on.disable": "false"}, {"remote.storage.enable": "false"})


def test_local_retention_is_that_of_the_topic_where_it_says_nothing() -> None:
    topic = resolve_topic(BrokerConfig.parse({}), {}, {}, {"retention.ms": "5", "local.retention.bytes": "7"})
    assert local_retention_ms(topic) == 5
    assert local_retention_bytes(topic) == 7
