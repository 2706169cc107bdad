"""The effective configuration of one group of the server-side protocol, and what may be set for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from headrace.config.broker import BrokerConfig, nearest
from headrace.config.consumer_group_bounds import consumer_group_bounds
from headrace.config.group_properties import GROUP_PROPERTIES
from headrace.core.errors import InvalidConfig


class ConsumerGroupSettings(NamedTuple):
    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def validate_group_overrides(overrides: Mapping[str, str], broker: BrokerConfig) -> None:
    """All of a group's own settings, as they would stand after the change."""
    values: dict[str, int] = {}
    for name, text in overrides.items():
        declared = GROUP_PROPERTIES.get(name)
        if declared is None:
            near = nearest(name, list(GROUP_PROPERTIES))
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidConfig(f"{name} is not a group property{hint}")
        try:
            values[name] = declared.parse(text)
        except ValueError as error:
            raise InvalidConfig(str(error)) from None
    for bounded in consumer_group_bounds(broker):
        name = f"consumer.{bounded.name}"
        value = values.get(name, bounded.value)
        if not bounded.least <= value <= bounded.most:
            raise InvalidConfig(
                f"{name}={value}: the brokers allow {bounded.least} to {bounded.most} "
                f"(group.consumer.min.{bounded.name}, group.consumer.max.{bounded.name})"
            )
    settings = _settings(overrides, broker)
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise InvalidConfig(
            f"consumer.heartbeat.interval.ms={settings.heartbeat_interval_ms} is not below "
            f"consumer.session.timeout.ms={settings.session_timeout_ms}, so that every member would be taken "
            "for dead"
        )


def resolve_group(broker: BrokerConfig, overrides: Mapping[str, str]) -> ConsumerGroupSettings:
    """What holds for a group with these settings of its own.

    They were checked against the bounds of the broker that was the controller. Where this one's are narrower
    now, it keeps to its own. A pair that makes no sense then counts for nothing, and neither does text that
    another version has stored and this one cannot read.
    """
    settings = _settings(overrides, broker)
    if settings.heartbeat_interval_ms < settings.session_timeout_ms:
        return settings
    common = _settings({}, broker)
    return common._replace(assignment_interval_ms=settings.assignment_interval_ms)


def _settings(overrides: Mapping[str, str], broker: BrokerConfig) -> ConsumerGroupSettings:
    values = []
    for bounded in consumer_group_bounds(broker):
        value = bounded.value
        declared = GROUP_PROPERTIES[f"consumer.{bounded.name}"]
        text = overrides.get(declared.name)
        if text is not None:
            try:
                value = min(max(declared.parse(text), bounded.least), bounded.most)
            except ValueError:
                value = bounded.value
        values.append(value)
    return ConsumerGroupSettings(*values)
