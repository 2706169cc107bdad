"""Effective configuration: what the file says, what was set at run time, what a topic overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.config.describe import ConfigEntry, describe_broker, describe_default_broker, describe_topic
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.controller.image import ResourceType
from headrace.controller.topic_names import check_topic_name
from headrace.core.errors import InvalidRequest, UnknownTopicOrPartition

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


def topic_config(broker: Broker, topic: str) -> TopicConfig:
    """What holds for a topic now."""
    image = broker.image
    return resolve_topic(
        broker.static_config,
        image.broker_configs(None),
        image.broker_configs(broker.broker_id),
        image.topic_configs(topic),
    )


def topic_entries(
    broker: Broker, overrides: Mapping[str, str], wanted: set[str] | None = None
) -> list[ConfigEntry]:
    image = broker.image
    return describe_topic(
        broker.static_config,
        image.broker_configs(None),
        image.broker_configs(broker.broker_id),
        overrides,
        wanted,
    )


def describe_resource(
    broker: Broker, resource_type: int, name: str, wanted: set[str] | None
) -> list[ConfigEntry]:
    image = broker.image
    if resource_type == ResourceType.TOPIC:
        check_topic_name(name)
        if image.topic(name) is None:
            raise UnknownTopicOrPartition(f"there is no topic {name}")
        return topic_entries(broker, image.topic_configs(name), wanted)
    if resource_type == ResourceType.BROKER:
        if not name:
            return describe_default_broker(image.broker_configs(None), wanted)
        if name != str(broker.broker_id):
            raise InvalidRequest(f"this is broker {broker.broker_id}: ask broker {name} about itself")
        return describe_broker(
            broker.static_config, image.broker_configs(None), image.broker_configs(broker.broker_id), wanted
        )
    raise InvalidRequest(f"resources of type {resource_type} have no configuration here")
