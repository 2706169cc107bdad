"""The declared properties, as the controller asks about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from headrace.config.broker import BROKER_PROPERTIES, BrokerConfig
from headrace.config.group import validate_group_overrides
from headrace.config.group_properties import GROUP_PROPERTIES
from headrace.config.property import Property
from headrace.config.tiering import ENABLE, FORK, check_tiered_topic
from headrace.config.topic import resolve_topic
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.validation import validate_broker_dynamic, validate_topic_overrides
from headrace.config.values import ConfigType
from headrace.controller.image import ResourceType

NOTHING: Final[Mapping[str, str]] = {}


class DeclaredSchema:
    __slots__ = ("_broker",)

    def __init__(self, broker: BrokerConfig | None = None) -> None:
        """`broker` has the bounds of what a group may have; without one they are the defaults."""
        self._broker = BrokerConfig.parse({}) if broker is None else broker

    def check_topic(self, overrides: Mapping[str, str], before: Mapping[str, str] = NOTHING) -> None:
        validate_topic_overrides(overrides)
        if ENABLE in overrides or ENABLE in before or FORK in overrides:
            topic = resolve_topic(self._broker, {}, {}, overrides)
            is_possible = self._broker.remote_log_storage_system_enable
            check_tiered_topic(topic, before, is_possible=is_possible)

    def check_group(self, overrides: Mapping[str, str]) -> None:
        validate_group_overrides(overrides, self._broker)

    def check_broker(self, values: Mapping[str, str], changed: Iterable[str], *, cluster_wide: bool) -> None:
        """Only what is being set: a value that another version stored may stay, or be deleted."""
        settings = {name: values[name] for name in changed if name in values}
        validate_broker_dynamic(settings, for_one_broker=not cluster_wide)

    def is_list(self, resource_type: int, name: str) -> bool:
        declared = _declared(resource_type, name)
        return declared is not None and declared.type is ConfigType.LIST

    def default(self, resource_type: int, name: str) -> str | None:
        declared = _declared(resource_type, name)
        return None if declared is None else declared.default_text()


def _declared(resource_type: int, name: str) -> Property[object] | None:
    if resource_type == ResourceType.TOPIC:
        return TOPIC_PROPERTIES.get(name)
    if resource_type == ResourceType.GROUP:
        return GROUP_PROPERTIES.get(name)
    return BROKER_PROPERTIES.get(name)
