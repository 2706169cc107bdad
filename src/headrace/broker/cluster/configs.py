"""Effective configuration: what the file says, what was set at run time, what a topic overrides."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.config.describe import (
    ConfigEntry,
    describe_broker,
    describe_default_broker,
    describe_group,
    describe_topic,
)
from headrace.config.topic import TopicConfig, resolve_topic
from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.topic_names import check_topic_name
from headrace.core.errors import InvalidRequest, UnknownTopicOrPartition


def topic_config(runtime: Runtime, metadata: MetadataCache, topic: str) -> TopicConfig:
    """What holds for a topic now."""
    image = metadata.image
    return resolve_topic(
        runtime.static_config,
        image.broker_configs(None),
        image.broker_configs(runtime.broker_id),
        image.topic_configs(topic),
    )


def topic_entries(
    runtime: Runtime, metadata: MetadataCache, overrides: Mapping[str, str], wanted: set[str] | None = None
) -> list[ConfigEntry]:
    image = metadata.image
    return describe_topic(
        runtime.static_config,
        image.broker_configs(None),
        image.broker_configs(runtime.broker_id),
        overrides,
        wanted,
    )


def describe_resource(
    runtime: Runtime, metadata: MetadataCache, resource_type: int, name: str, wanted: set[str] | None
) -> list[ConfigEntry]:
    image = metadata.image
    if resource_type == ResourceType.TOPIC:
        check_topic_name(name)
        if image.topic(name) is None:
            raise UnknownTopicOrPartition(f"there is no topic {name}")
        return topic_entries(runtime, metadata, image.topic_configs(name), wanted)
    if resource_type == ResourceType.BROKER:
        if not name:
            return describe_default_broker(image.broker_configs(None), wanted)
        if name != str(runtime.broker_id):
            raise InvalidRequest(f"this is broker {runtime.broker_id}: ask broker {name} about itself")
        return describe_broker(
            runtime.static_config, image.broker_configs(None), image.broker_configs(runtime.broker_id), wanted
        )
    if resource_type == ResourceType.GROUP:
        if not name:
            raise InvalidRequest("a group has a name")
        return describe_group(
            runtime.static_config,
            image.broker_configs(None),
            image.broker_configs(runtime.broker_id),
            image.configs(ConfigResource(ResourceType.GROUP, name)),
            wanted,
        )
    raise InvalidRequest(f"resources of type {resource_type} have no configuration here")
