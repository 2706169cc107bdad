"""The declared properties, as the controller asks about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.config.broker import BROKER_PROPERTIES
from headrace.config.property import Property
from headrace.config.topic_properties import TOPIC_PROPERTIES
from headrace.config.validation import validate_broker_dynamic, validate_topic_overrides
from headrace.config.values import ConfigType
from headrace.controller.image import ResourceType


class DeclaredSchema:
    __slots__ = ()

    def check_topic(self, overrides: Mapping[str, str]) -> None:
        validate_topic_overrides(overrides)

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
    properties = TOPIC_PROPERTIES if resource_type == ResourceType.TOPIC else BROKER_PROPERTIES
    return properties.get(name)
