"""What DescribeConfigs answers: each property with its value, where that comes from, and what lies beneath.

Sources and synonyms follow Kafka's answers, including one oddity: the synonyms of a property begin at its
own broker-level name, so that segment.ms lists nothing, and calls itself a default, while only
log.roll.hours is set.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.group_properties import GROUP_PROPERTIES
from headrace.config.property import Property, UpdateMode
from headrace.config.topic import effective_value
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.values import ConfigType, format_value

_CHAINS = {
    name: tuple(synonym for synonym, _ in declared.synonyms[at:])
    for declared in TOPIC_PROPERTIES.values()
    for at, (name, _) in enumerate(declared.synonyms)
}
"""For each broker property with a topic counterpart: itself and the weaker ones after it."""


class ConfigSource(enum.IntEnum):
    """The numbers are those of the DescribeConfigs answer."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_GROUP_CONFIG = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    """None where it is not set, and where it is secret."""
    source: ConfigSource
    is_default: bool
    read_only: bool
    sensitive: bool
    synonyms: list[Synonym]
    type: ConfigType
    documentation: str


def describe_topic(
    broker: BrokerConfig,
    dynamic_default_broker: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    overrides: Mapping[str, str],
    names: Iterable[str] | None = None,
) -> list[ConfigEntry]:
    """Every topic property, or those of `names` that exist."""
    wanted = None if names is None else set(names)
    entries = []
    for declared in TOPIC_PROPERTIES.values():
        if (declared.internal and declared.name not in overrides) or _unwanted(declared, wanted):
            continue
        value = effective_value(declared, broker, dynamic_default_broker, dynamic_broker, overrides)
        synonyms = []
        if declared.synonyms:
            first = declared.synonyms[0][0]
            synonyms = _broker_synonyms(first, broker, dynamic_default_broker, dynamic_broker)
        if declared.name in overrides:
            own = Synonym(declared.name, overrides[declared.name], ConfigSource.DYNAMIC_TOPIC_CONFIG)
            synonyms.insert(0, own)
        entries.append(_entry(declared, value, synonyms, read_only=False))
    return entries


def describe_group(
    broker: BrokerConfig,
    dynamic_default_broker: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    overrides: Mapping[str, str],
    names: Iterable[str] | None = None,
) -> list[ConfigEntry]:
    """Every group property, or those of `names` that exist. A group has settings before it has members."""
    wanted = None if names is None else set(names)
    entries = []
    for declared in GROUP_PROPERTIES.values():
        if _unwanted(declared, wanted):
            continue
        value = effective_value(declared, broker, dynamic_default_broker, dynamic_broker, overrides)
        synonyms = _broker_synonyms(declared.synonyms[0][0], broker, dynamic_default_broker, dynamic_broker)
        if declared.name in overrides:
            own = Synonym(declared.name, overrides[declared.name], ConfigSource.DYNAMIC_GROUP_CONFIG)
            synonyms.insert(0, own)
        entries.append(_entry(declared, value, synonyms, read_only=False))
    return entries


def describe_broker(
    broker: BrokerConfig,
    dynamic_default_broker: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
    names: Iterable[str] | None = None,
) -> list[ConfigEntry]:
    """Every broker property, or those of `names` that exist."""
    wanted = None if names is None else set(names)
    effective = broker.with_dynamic(dynamic_default_broker, dynamic_broker)
    return [
        _entry(
            declared,
            effective[declared.name],
            _broker_synonyms(declared.name, broker, dynamic_default_broker, dynamic_broker),
            read_only=declared.update is UpdateMode.READ_ONLY,
        )
        for declared in BROKER_PROPERTIES.values()
        if not _unwanted(declared, wanted)
        and (
            not declared.internal
            or declared.name in dynamic_broker
            or declared.name in dynamic_default_broker
        )
    ]


def describe_default_broker(
    dynamic_default_broker: Mapping[str, str], names: Iterable[str] | None = None
) -> list[ConfigEntry]:
    """The resource with an empty name: only what was set for all brokers, nothing else."""
    wanted = None if names is None else set(names)
    entries = []
    for name, text in dynamic_default_broker.items():
        declared = BROKER_PROPERTIES.get(name)
        if declared is None or _unwanted(declared, wanted):
            continue
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        entries.append(_entry(declared, text, [_synonym(declared, text, source)], read_only=False))
    return entries


def _unwanted(declared: Property[Any], wanted: set[str] | None) -> bool:
    return wanted is not None and declared.name not in wanted


def _entry(declared: Property[Any], value: Any, synonyms: list[Synonym], *, read_only: bool) -> ConfigEntry:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigEntry(
        declared.name,
        None if value is None or declared.sensitive else format_value(value),
        source,
        source is ConfigSource.DEFAULT_CONFIG,
        read_only,
        declared.sensitive,
        synonyms,
        declared.type,
        declared.prose,
    )


def _broker_synonyms(
    name: str,
    broker: BrokerConfig,
    dynamic_default_broker: Mapping[str, str],
    dynamic_broker: Mapping[str, str],
) -> list[Synonym]:
    found: list[Synonym] = []
    chain = _CHAINS.get(name, (name,))
    layers = (
        (ConfigSource.DYNAMIC_BROKER_CONFIG, dynamic_broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, dynamic_default_broker),
        (ConfigSource.STATIC_BROKER_CONFIG, broker.given),
    )
    for source, layer in layers:
        found.extend(
            _synonym(BROKER_PROPERTIES[synonym], layer[synonym], source)
            for synonym in chain
            if synonym in layer
        )
    for synonym in chain:
        declared = BROKER_PROPERTIES[synonym]
        default = declared.default_text()
        if default is not None:
            found.append(_synonym(declared, default, ConfigSource.DEFAULT_CONFIG))
    while found and found[0].name != name:
        del found[0]
    return found


def _synonym(declared: Property[Any], text: str, source: ConfigSource) -> Synonym:
    return Synonym(declared.name, None if declared.sensitive else text, source)
